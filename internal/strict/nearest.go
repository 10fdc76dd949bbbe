package strict

import "strings"

// DidYouMean gives a fix for a word that is none of the known ones: the
// nearest of them, or all of them where none is near and they are few.
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	if len(known) == 0 || len(known) > 12 {
		return ""
	}
	return "known here: " + strings.Join(known, ", ")
}

// Nearest gives the known word that word most probably is a slip of, empty
// if none is near. Letter case and the choice between '-', '_' and '.' do
// not count as differences. Of equally near ones the first wins.
func Nearest(word string, known []string) string {
	best, bestDistance := "", 0
	w := fold(word)
	for _, k := range known {
		f := fold(k)
		d := distance(w, f)
		if d <= tolerance(len(w), len(f)) && (best == "" || d < bestDistance) {
			best, bestDistance = k, d
		}
	}
	return best
}

// maxWord bounds the work for a word from a hostile file.
const maxWord = 64

func fold(s string) string {
	if len(s) > maxWord {
		s = s[:maxWord]
	}
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(s))
}

// tolerance is how many slips two words of these lengths may lie apart: a
// third of the shorter, but one for all but the shortest.
func tolerance(a, b int) int {
	short := min(a, b)
	if short < 2 {
		return 0
	}
	return max(1, short/3)
}

// distance counts the insertions, deletions, changes and swaps of neighbours
// that make a into b (optimal string alignment).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(change, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
