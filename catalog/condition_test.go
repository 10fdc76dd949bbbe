package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

// after is a compose service that waits for others.
func after(name string, conditions map[string]string) workload.Container {
	c := service("p", name, "host="+name+".example.com")
	c.Conditions = conditions
	for service := range conditions {
		c.DependsOn = append(c.DependsOn, service)
	}
	return c
}

func find(t *testing.T, c workload.Catalog, name string) workload.Workload {
	t.Helper()
	for _, w := range c.Workloads {
		if w.Name == name {
			return w
		}
	}
	require.Fail(t, "no workload "+name, "%v", errorsOf(c))
	return workload.Workload{}
}

func TestConditionsOfComposeSayWhatADependencyHasToBe(t *testing.T) {
	db, cache, migrate := service("p", "db"), service("p", "cache"), service("p", "migrate")
	db.HealthCheck, db.Ports, migrate.Ports = true, nil, nil
	app := after("app", map[string]string{"db": "service_healthy", "cache": "service_started", "migrate": "service_completed_successfully"})
	c := build([]workload.Container{app, db, cache, migrate})
	require.Empty(t, c.Problems)
	require.ElementsMatch(t, []string{"db", "cache", "migrate"}, find(t, c, "app").DependsOn)
	require.Equal(t, workload.ReadyDocker, find(t, c, "db").Ready.Kind)
	require.Equal(t, workload.ReadyAuto, find(t, c, "cache").Ready.Kind)
	require.True(t, find(t, c, "migrate").Job)
	require.False(t, find(t, c, "db").Job)

	db.Labels["ready"], db.Labels["port"] = "tcp", "5432"
	c = build([]workload.Container{app, db, cache, migrate})
	require.Equal(t, workload.ReadyTCP, find(t, c, "db").Ready.Kind, "its own word counts")

	other := service("q", "db")
	other.Labels["name"] = "other"
	c = build([]workload.Container{app, db, cache, migrate, other})
	require.Equal(t, workload.ReadyAuto, find(t, c, "other").Ready.Kind, "of another project")
}

func TestConditionsThatCannotBeMetAreTold(t *testing.T) {
	app := after("app", map[string]string{"db": "service_healthy"})
	next := after("next", map[string]string{"app": "service_completed_successfully"})
	c := build([]workload.Container{app, next, service("p", "db")})
	require.Equal(t, []string{
		"p-app-1: next waits for app to complete, which has a host and serves until it is put to sleep; it is waited for until it is ready (remove the host, or write condition: service_healthy)",
		"p-db-1: app waits for db to be healthy, which has no health check; it is waited for until it is ready (add a healthcheck, or write condition: service_started)",
	}, errorsOf(c))
	require.False(t, find(t, c, "app").Job)
}
