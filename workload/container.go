package workload

// A Container is what a platform knows of one container, running or not,
// before anybody has made sense of its labels.
type Container struct {
	ID   string
	Name string
	// Project and Service are compose's; empty for a container that compose
	// did not make.
	Project, Service string
	// Labels are Rouse's alone: keys in lower case, without the prefix.
	Labels map[string]string // label -> value
	// Foreign are labels of other products that are read too, whole keys in
	// lower case.
	Foreign map[string]string // label -> value
	// Ports are the TCP ports it exposes, ascending.
	Ports []int
	// DependsOn are the compose services that it depends on.
	DependsOn []string
	// Conditions are how far those have to be, in compose's words; what is left
	// out has only to be started.
	Conditions map[string]string // service -> condition
	// CPULimited says that it has a limit of its own on the CPU it may use.
	CPULimited bool
	// HealthCheck says that the container has a health check of its own.
	HealthCheck bool
}

// Enabled reports the opt-in: without it a container is found by nothing but
// an entry of the config file that names it. Rouse's own label decides where
// it is given.
func (c Container) Enabled() bool {
	if enable, given := c.Labels["enable"]; given {
		return enable == "true"
	}
	return c.ForeignEnabled()
}

// ForeignEnabled reports the opt-in of Sablier, where its labels are read.
func (c Container) ForeignEnabled() bool { return c.Foreign["sablier.enable"] == "true" }

// WorkloadName is the name of the workload that the container belongs to:
// its label, else its compose service, else its own name.
func (c Container) WorkloadName() string {
	if name := c.Labels["name"]; name != "" {
		return name
	}
	if c.Service != "" {
		return c.Service
	}
	return c.Name
}

// Selects reports whether the container is a replica of w: it is the one
// that w names, belongs to the service that w names, or carries w's name.
func (w *Workload) Selects(c Container) bool {
	switch {
	case w.Container != "":
		return c.Name == w.Container
	case w.Service != "":
		return c.Service == w.Service
	}
	return c.Enabled() && c.WorkloadName() == w.Name
}
