package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the documents call a test is one: `package.TestName`.
var namedTest = regexp.MustCompile("`([a-z0-9_/]+)\\.(Test[A-Z][A-Za-z0-9]*)`")

func TestTestsThatDocumentsNameExist(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	recipes, err := filepath.Glob("../../docs/recipes/*.md")
	require.NoError(t, err)
	for _, recipe := range recipes {
		text, err := os.ReadFile(recipe)
		require.NoError(t, err)
		if filepath.Base(recipe) != "README.md" {
			assert.Regexp(t, namedTest, string(text), "%s names no test", recipe)
		}
	}
	documents = append(append(documents, recipes...), "../../SECURITY.md")
	found := 0
	for _, document := range documents {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.True(t, hasTest(t, m[1], m[2]), "%s names %s.%s: there is no such test", filepath.Base(document), m[1], m[2])
		}
	}
	require.Positive(t, found)
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	require.NoError(t, err)
	declares := regexp.MustCompile(`(?m)^func ` + name + `\(`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if declares.Match(source) {
			return true
		}
	}
	return false
}
