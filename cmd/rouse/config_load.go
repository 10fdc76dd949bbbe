package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
)

// configFiles are looked for, in this order, when no file is named.
var configFiles = []string{"rouse.yaml", "/etc/rouse/rouse.yaml"}

// loadConfig reads the configuration: defaults, then the file at path, then
// the ROUSE_ variables of env ("KEY=value", as of os.Environ), then flags, a
// map of keys to their text. An empty path means ROUSE_CONFIG, else the first
// of configFiles that exists, else no file.
//
// The error, if any, has exitConfig and every problem. The Config is complete
// even then, as far as the values were good, so that `config show` can tell.
func loadConfig(path string, env []string, flags map[string]string) (Config, error) {
	c := defaultConfig()
	l := loader{config: &c, table: configTable(&c), env: variables(env)}
	l.file(path)
	l.environment()
	l.flags(flags)
	l.problems = append(l.problems, c.validate()...)
	return c, l.problems.err()
}

type loader struct {
	config   *Config
	table    strict.Table
	env      map[string]string // variable -> value
	problems problems
}

// file reads the named file, which must exist, or one of the usual ones.
func (l *loader) file(path string) {
	if path == "" {
		path = l.env["ROUSE_CONFIG"]
	}
	if path == "" {
		path = usualFile()
	}
	if path == "" {
		return
	}
	l.config.File = path
	data, err := readFile(path)
	if err != nil {
		l.problems.add(path, "cannot be read: "+bare(err), "name another file with --config, or create it")
		return
	}
	root, wrong := strict.Parse(path, data)
	l.problems = append(l.problems, wrong...)
	settings, wrong := l.table.Decode(path, root)
	l.problems = append(l.problems, wrong...)
	for _, s := range settings {
		l.config.origins[s.Key] = s.Place
	}
}

func usualFile() string {
	for _, path := range configFiles {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// bare is the cause alone: the path is in the place already.
func bare(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

const envPrefix = "ROUSE_"

// variables picks those of the environment that are ours.
func variables(env []string) map[string]string {
	ours := map[string]string{}
	for _, pair := range env {
		if name, value, ok := strings.Cut(pair, "="); ok && strings.HasPrefix(name, envPrefix) {
			ours[name] = value
		}
	}
	return ours
}

// clientVariables are no settings: the commands read them, or the scripts and
// the compose file that start rouse.
var clientVariables = []string{
	"ROUSE_CONFIG", "ROUSE_ADMIN", "ROUSE_TOKEN", "ROUSE_TOKEN_FILE", "ROUSE_OUTPUT",
	"ROUSE_RUNTIME", "ROUSE_DEMO_CONTAINER", "ROUSE_TAG",
}

// injected matches the variables that Kubernetes makes for every service of a
// namespace. One called rouse, or rouse-gateway, must not stop us.
var injected = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// variable is what the environment calls a key.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (l *loader) environment() {
	keys := map[string]*strict.Key{} // variable -> key
	for i, k := range l.table {
		if k.Value.Shape != strict.Opaque {
			keys[variable(k.Name)] = &l.table[i]
		}
	}
	known := slices.Concat(slices.Sorted(maps.Keys(keys)), clientVariables)
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		k := keys[name]
		switch {
		case k != nil:
			l.set(k, name, l.env[name])
		case slices.Contains(clientVariables, name) || injected.MatchString(name):
		default:
			l.problems.add(name, "unknown variable", strict.DidYouMean(name, known))
		}
	}
}

func (l *loader) flags(flags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		flag := "--" + strings.NewReplacer(".", "-", "_", "-").Replace(key)
		if k := l.table.Find(key); k != nil && k.Value.Shape != strict.Opaque {
			l.set(k, flag, flags[key])
		} else {
			l.problems.add(flag, "unknown key "+key, strict.DidYouMean(key, l.table.Names()))
		}
	}
}

// set stores the text of a variable or flag.
func (l *loader) set(k *strict.Key, origin, text string) {
	if err := k.Value.Set(k.Value.Split(text)); err != nil {
		l.problems = append(l.problems, strict.ProblemOf(origin, k.Name, err))
		return
	}
	l.config.origins[k.Name] = origin
}
