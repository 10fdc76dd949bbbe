package strict_test

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

type mode string

type settings struct {
	Listen  string
	Wait    time.Duration
	Size    int64
	Count   int
	On      bool
	Mode    mode
	Nets    []netip.Prefix
	Words   []string
	Command []string
	Env     []string
	Ends    []string
	Opaque  string
}

func (s *settings) table() strict.Table {
	return strict.Table{
		{Name: "listen", Doc: "Where.", Value: strict.One(&s.Listen, strict.Text(nil))},
		{Name: "time.wait", Doc: "How long.", Value: strict.One(&s.Wait, strict.Duration(time.Millisecond))},
		{Name: "time.count", Doc: "How often.", Value: strict.One(&s.Count, strict.Int(1, 10))},
		{Name: "size", Doc: "How much.", Value: strict.One(&s.Size, strict.Size(1024))},
		{Name: "on", Doc: "Whether.", Value: strict.One(&s.On, strict.Bool())},
		{Name: "mode", Doc: "In which way.", Value: strict.One(&s.Mode, strict.Enum[mode]("fast", "slow"))},
		{Name: "nets", Doc: "From where.", Value: strict.Many(&s.Nets, strict.List, strict.Prefix())},
		{Name: "words", Doc: "Which.", Value: strict.Many(&s.Words, strict.List, strict.Text(nil))},
		{Name: "run.command", Doc: "What.", Value: strict.Many(&s.Command, strict.Words, strict.Text(nil))},
		{Name: "run.env", Doc: "With what.", Value: strict.Many(&s.Env, strict.Pairs, strict.Text(nil))},
		{Name: "ends", Doc: "Between what.", Value: ends(&s.Ends)},
		{Name: "opaque", Doc: "Read elsewhere.", Value: strict.Value{Shape: strict.Opaque, Node: func(_ string, n *yaml.Node) []strict.Problem {
			s.Opaque = n.Value
			return nil
		}}},
	}
}

func ends(p *[]string) strict.Value {
	v := strict.Many(p, strict.List, strict.Text(nil))
	v.Parts = []string{"from", "to"}
	return v
}

func TestAnItemOfPartsIsAMappingOrItsText(t *testing.T) {
	s, _, problems := decode(t, "ends: [{from: a, to: b}, c=d, {to: f, from: e}]")
	require.Empty(t, problems)
	require.Equal(t, []string{"a=b", "c=d", "e=f"}, s.Ends)
	for text, want := range map[string]string{
		"ends: [{from: a}]":                 "f.yaml:1:8: ends has an item without to (each needs from and to)",
		"ends: [{from: a, to: b, too: c}]":  `f.yaml:1:25: unknown key "too" in ends (did you mean to?)`,
		"ends: [{from: [a], to: b}]":        "f.yaml:1:15: ends has no from (write one value)",
		"ends: [{from: a, to: }]":           "f.yaml:1:22: ends has no to (write one value)",
		"ends: [{from: a, from: b, to: c}]": "f.yaml:1:18: ends has from twice (keep one)",
		"words: [{from: a, to: b}]":         "f.yaml:1:9: words has a mapping among its values (write plain values)",
	} {
		s, _, problems := decode(t, text)
		require.Len(t, problems, 1, text)
		require.Equal(t, want, problems[0].Error())
		require.Empty(t, s.Ends, "it is not applied in part")
	}
}

func decode(t *testing.T, text string) (settings, []strict.Setting, []strict.Problem) {
	t.Helper()
	var s settings
	root, problems := strict.Parse("f.yaml", []byte(text))
	given, more := s.table().Decode("f.yaml", root)
	return s, given, append(problems, more...)
}

func TestEveryShapeIsRead(t *testing.T) {
	s, given, problems := decode(t, `
listen: ":80"
time: { wait: 1m30s, count: 3 }
size: 64MiB
on: true
mode: slow
nets: [10.1.2.3/8, "::1"]
words: one
run:
  command: [a, "b c"]
  env: { KEY: value, EMPTY: }
opaque: seen
`)
	require.Empty(t, problems)
	require.Equal(t, settings{
		Listen: ":80", Wait: 90 * time.Second, Count: 3, Size: 64 << 20, On: true, Mode: "slow",
		Nets:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Words: []string{"one"}, Command: []string{"a", "b c"}, Env: []string{"KEY=value", "EMPTY="}, Opaque: "seen",
	}, s)
	require.Equal(t, strict.Setting{Key: "time.wait", Text: []string{"1m30s"}, Place: "f.yaml:3:9"}, given[1])
}

func TestEveryProblemIsReportedWithItsPlace(t *testing.T) {
	s, _, problems := decode(t, `listne: ":80"
time: { wait: 5, cuont: 3 }
size: 12
on: yes
mode: fats
nets: [10.0.0.0/8, here, 10.0.0.1/99]
words: { a: b }
wait: 3s
run: [x]
size: 2GiB
listen:
`)
	require.Equal(t, settings{}, s, "a setting with a problem is not applied")
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	require.Equal(t, []string{
		`f.yaml:1:1: unknown key "listne" (did you mean listen?)`,
		`f.yaml:2:15: time.wait: "5" is not a duration (write numbers with units: 500ms, 90s, 15m, 1h30m)`,
		`f.yaml:2:18: unknown key "time.cuont" (did you mean count?)`,
		`f.yaml:3:7: size: "12" is not a size of 1KiB or more (write a number of bytes or one with a unit: 512KiB, 64MiB, 2GiB)`,
		`f.yaml:4:5: on: "yes" is neither true nor false (write true or false)`,
		`f.yaml:5:7: mode: "fats" is none of fast, slow (did you mean fast?)`,
		`f.yaml:6:20: nets: "here" is not a network (write a network or an address: 10.0.0.0/8, 192.168.1.7, fd00::/8)`,
		`f.yaml:6:26: nets: "10.0.0.1/99" is not a network (write a network or an address: 10.0.0.0/8, 192.168.1.7, fd00::/8)`,
		`f.yaml:7:8: words is a mapping where a list is wanted`,
		`f.yaml:8:1: unknown key "wait" (did you mean time: { wait: … }?)`,
		`f.yaml:9:6: run is a list where a mapping is wanted (known here: command, env)`,
		`f.yaml:10:1: size is given twice (the first is in line 3; keep one)`,
		`f.yaml:11:8: listen has no value (give it one, or remove the line)`,
	}, lines)
}

func TestWhatIsNoMappingIsAProblem(t *testing.T) {
	for text, want := range map[string]string{
		"- a":                       "f.yaml:1:1: the file holds a list where a mapping is wanted",
		"word":                      "f.yaml:1:1: the file holds one value where a mapping is wanted",
		"listen: a\n---\nlisten: b": "f.yaml:2:1: a second document begins",
		"a: [b":                     "f.yaml:1:1: not YAML: ",
		"listen: a\n\tmode: x":      "f.yaml:2:1: not YAML: ",
		"? [a, b]\n: c":             `f.yaml:1:3: unknown key ""`,
	} {
		_, _, problems := decode(t, text)
		require.Len(t, problems, 1, text)
		require.Contains(t, problems[0].Error(), want, text)
	}
}

func TestAnEmptyFileAndAnEmptySectionAreNoProblem(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "time:\n  # wait: 3s\n"} {
		_, given, problems := decode(t, text)
		require.Empty(t, problems, text)
		require.Empty(t, given, text)
	}
}

func TestAliasesStandForTheirAnchors(t *testing.T) {
	s, _, problems := decode(t, "words: &w [a, b]\nrun: { command: *w }\n")
	require.Empty(t, problems)
	require.Equal(t, []string{"a", "b"}, s.Command)
	_, _, problems = decode(t, "words: &w [a, *w]\n")
	require.Len(t, problems, 1, "an anchor that holds itself is no value")
}

func TestAnUnreadableListIsNotAppliedInPart(t *testing.T) {
	s := settings{Words: []string{"kept"}, Nets: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	require.Error(t, s.table().Apply(strict.Setting{Key: "nets", Text: []string{"10.0.0.0/8", "x"}}))
	require.Equal(t, "127.0.0.0/8", s.Nets[0].String())
	require.NoError(t, s.table().Apply(strict.Setting{Key: "words"}))
	require.Empty(t, s.Words, "an empty list replaces what was there")
	require.NoError(t, s.table().Apply(strict.Setting{Key: "unknown", Text: []string{"x"}}))
	require.Error(t, s.table().Apply(strict.Setting{Key: "mode", Text: []string{"fast", "slow"}}))
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for _, d := range []time.Duration{0, time.Millisecond, 90 * time.Second, 15 * time.Minute, 2 * time.Hour, 61 * time.Minute, 1500 * time.Millisecond} {
		back, err := strict.Duration(0).Parse(strict.FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, back)
	}
	require.Equal(t, "15m", strict.FormatDuration(15*time.Minute))
	require.Equal(t, "2h", strict.FormatDuration(2*time.Hour))
	require.Equal(t, "10m1s", strict.FormatDuration(601*time.Second))
	for _, n := range []int64{0, 1, 1023, 1024, 1 << 20, 64 << 20, 3<<30 + 1} {
		back, err := strict.Size(0).Parse(strict.FormatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, back)
	}
	require.Equal(t, "64MiB", strict.FormatSize(64<<20))
}

func TestNearestKnowsASlipFromAStranger(t *testing.T) {
	known := []string{"idle_timeout", "hold_timeout", "host", "port", "path"}
	for word, want := range map[string]string{
		"idle-timeout": "idle_timeout", "IdleTimeout": "idle_timeout", "idle_timeuot": "idle_timeout",
		"hots": "host", "prot": "port", "pth": "path", "holdtimeout": "hold_timeout",
		"": "", "x": "", "color": "", "middleware": "",
	} {
		require.Equal(t, want, strict.Nearest(word, known), word)
	}
}

func TestSchemaDescribesTheTable(t *testing.T) {
	s := settings{Listen: ":80", Wait: time.Minute, Words: []string{"a"}, Count: 1}
	data, err := json.Marshal(s.table().Schema())
	require.NoError(t, err)
	var schema struct {
		Additional bool `json:"additionalProperties"`
		Properties map[string]struct {
			Type        any            `json:"type"`
			Description string         `json:"description"`
			Default     any            `json:"default"`
			Enum        []string       `json:"enum"`
			AnyOf       []any          `json:"anyOf"`
			Properties  map[string]any `json:"properties"`
		} `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(data, &schema))
	require.False(t, schema.Additional)
	require.Len(t, schema.Properties, 10)
	require.Equal(t, ":80", schema.Properties["listen"].Default)
	require.Equal(t, "Where.", schema.Properties["listen"].Description)
	require.Equal(t, []string{"fast", "slow"}, schema.Properties["mode"].Enum)
	require.Len(t, schema.Properties["words"].AnyOf, 2)
	require.Equal(t, []any{"a"}, schema.Properties["words"].Default)
	require.Contains(t, schema.Properties["time"].Properties, "wait")
	require.Equal(t, float64(1), schema.Properties["time"].Properties["count"].(map[string]any)["default"])
}

func FuzzDecode(f *testing.F) {
	f.Add("listen: a\ntime: {wait: 3s}\n")
	f.Add("a: &a [*a]\nrun: {command: *a}\n? {}\n: x")
	f.Add("words: [a, [b], {c: d}, null]\nrun: {env: {a: {b: c}}}\n<<: {}")
	f.Fuzz(func(t *testing.T, text string) {
		var s settings
		root, problems := strict.Parse("f", []byte(text))
		given, more := s.table().Decode("f", root)
		for _, p := range append(problems, more...) {
			require.NotEmpty(t, p.Place)
			require.NotEmpty(t, p.Message)
		}
		var again settings
		for _, g := range given {
			require.NoError(t, again.table().Apply(g), "what was read once is read again")
		}
		s.Opaque = ""
		require.Equal(t, s, again)
	})
}
