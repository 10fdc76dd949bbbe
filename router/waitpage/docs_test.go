package waitpage_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router/waitpage"
)

func TestDocumentsSayWhatAThemeMayUse(t *testing.T) {
	text, err := os.ReadFile("../../docs/waiting-page.md")
	require.NoError(t, err)
	values := reflect.TypeFor[waitpage.Values]()
	for i := range values.NumField() {
		assert.Regexp(t, "(?m)^\\|.*`\\."+values.Field(i).Name+"`.*\\|.*\\|$", string(text))
	}
	example := regexp.MustCompile("(?s)```html\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, example)
	file := filepath.Join(t.TempDir(), "theme.html")
	require.NoError(t, os.WriteFile(file, example[1], 0o600))
	require.NoError(t, waitpage.CheckTheme(file))
	body := themed(t, waitpage.NewTheme(file, func(err error) { t.Error(err) }))
	assert.Contains(t, body, `data-status="/.rouse/status?workload=wiki"`)
}
