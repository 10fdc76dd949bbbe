package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/migration"
)

// Compose itself puts what is proposed over the file that it was made of, and
// the labels are there.
func TestProposedLabelsGoOverTheComposeFile(t *testing.T) {
	command := composeCommand(t)
	for _, name := range []string{"sablier", "godoxy", "lazytainer"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("..", "migration", "testdata", name+".compose.yaml")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			plan, problems := migration.Read(file, data)
			require.Empty(t, problems)
			var proposed bytes.Buffer
			require.NoError(t, plan.Write(&proposed))
			if strings.Contains(proposed.String(), "!reset") && !resets(command) {
				t.Skip("this compose takes nothing away (!reset, 2.24 and later)")
			}
			over := filepath.Join(t.TempDir(), "compose.override.yaml")
			require.NoError(t, os.WriteFile(over, proposed.Bytes(), 0o600))
			args := append(command[1:len(command):len(command)], "-f", file, "-f", over, "config")
			cmd := exec.Command(command[0], args...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			var merged struct {
				Services map[string]struct{ Labels map[string]string }
			}
			require.NoError(t, yaml.Unmarshal(out, &merged))
			for _, s := range plan.Services {
				for _, l := range s.Labels {
					want := strings.ReplaceAll(l.Value, "${IDLE:-30m}", "30m")
					assert.Equal(t, want, merged.Services[s.Name].Labels[l.Name], "%s of %s", l.Name, s.Name)
				}
			}
		})
	}
}

// resets reports a compose that knows !reset: version 2.24 or later.
func resets(command []string) bool {
	out, err := exec.Command(command[0], append(command[1:len(command):len(command)], "version", "--short")...).Output()
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	return err == nil && !strings.HasPrefix(version, "1.") && !strings.HasPrefix(version, "2.0") && !strings.HasPrefix(version, "2.1")
}
