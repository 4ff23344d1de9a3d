// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Mutant is an alert expression with one small change that a good set of stories must notice.
type Mutant struct {
	What string // the change, for people
	Expr string
}

var (
	comparison = regexp.MustCompile(`(>=|<=|==|>|<) (\d+(?:\.\d+)?)`)
	setWord    = regexp.MustCompile(`\b(and|or|unless)\b`)
	onLabels   = regexp.MustCompile(`\b(on|by) \(([a-z_, ]+)\)`)
	matcher    = regexp.MustCompile(`[a-z_]+(=~|!~|!=|=)"[^"]*"`)
	aggregate  = regexp.MustCompile(`\b(max|min) by\b`)
)

// Mutants makes every mutant of an alert expression: each threshold a tenth higher and lower, each comparison turned
// round, each set operator replaced by the two others, one label less in each match and each aggregation, each label
// matcher turned round, and maximum for minimum.
func Mutants(expr string) []Mutant {
	var all []Mutant
	put := func(loc []int, with string) {
		from := expr[loc[0]:loc[1]]
		if from == with {
			return
		}
		where := "at the start"
		if before := strings.Fields(expr[:loc[0]]); len(before) > 0 {
			where = "after " + strings.Join(before[max(0, len(before)-4):], " ")
		}
		all = append(all, Mutant{fmt.Sprintf("[%s -> %s] %s", from, with, where), expr[:loc[0]] + with + expr[loc[1]:]})
	}
	for _, m := range comparison.FindAllStringSubmatchIndex(expr, -1) {
		op, number := m[2:4], m[4:6]
		v, _ := strconv.ParseFloat(expr[number[0]:number[1]], 64) // the expression matched a number
		if v == 0 {
			put(number, "1")
			put(number, "-1")
		} else {
			put(number, strconv.FormatFloat(v*1.1, 'g', 6, 64))
			put(number, strconv.FormatFloat(v*0.9, 'g', 6, 64))
		}
		put(op, map[string]string{">": "<", ">=": "<", "<": ">", "<=": ">", "==": "!="}[expr[op[0]:op[1]]])
	}
	for _, loc := range setWord.FindAllStringIndex(expr, -1) {
		for _, with := range []string{"and", "or", "unless"} {
			put(loc, with)
		}
	}
	for _, m := range onLabels.FindAllStringSubmatchIndex(expr, -1) {
		labels := strings.Split(expr[m[4]:m[5]], ", ")
		if len(labels) < 2 {
			continue
		}
		for i := range labels {
			left := append(append([]string{}, labels[:i]...), labels[i+1:]...)
			put(m[4:6], strings.Join(left, ", "))
		}
	}
	for _, m := range matcher.FindAllStringSubmatchIndex(expr, -1) {
		put(m[2:4], map[string]string{"=": "!=", "!=": "=", "=~": "!~", "!~": "=~"}[expr[m[2]:m[3]]])
	}
	for _, m := range aggregate.FindAllStringSubmatchIndex(expr, -1) {
		put(m[2:4], map[string]string{"max": "min", "min": "max"}[expr[m[2]:m[3]]])
	}
	return all
}
