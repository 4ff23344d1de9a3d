// SPDX-License-Identifier: Apache-2.0

// Command run runs `go test -json` with the given arguments, writes everything that it prints to a log file, shows one
// line a package and the whole output of what failed, and closes with "N passed, N failed, N skipped".
//
//	go run ./test/run -log .log/check.log -- -race ./...
//
// Under CI (the environment variable CI is set) a skipped test is a failure unless test/skips.txt names it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// event is one line of `go test -json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64
	Output     string
}

func main() {
	logPath := flag.String("log", "", "file that receives everything")
	dir := flag.String("C", ".", "folder of the Go module to test")
	skips := flag.String("skips", "test/skips.txt", "names of tests that may be skipped under CI, one a line, # comments")
	flag.Parse()
	code, err := run(*dir, *logPath, *skips, os.Getenv("CI") != "", flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/run:", err)
		os.Exit(2)
	}
	os.Exit(code)
}

func run(dir, logPath, skips string, ci bool, args []string) (int, error) {
	allowed, err := readSkips(skips)
	if err != nil {
		return 0, err
	}
	log := io.Discard
	if logPath != "" {
		if err := os.MkdirAll(filepath.Dir(logPath), 0o755); err != nil {
			return 0, err
		}
		f, err := os.Create(logPath)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		log = f
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = io.MultiWriter(os.Stderr, log)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	s := newSummary(os.Stdout)
	in := bufio.NewScanner(stdout)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil { // not JSON: a message of the go command
			e = event{Action: "output", Output: in.Text() + "\n"}
		}
		io.WriteString(log, e.Output)
		s.add(e)
	}
	testErr := cmd.Wait()
	return s.close(testErr, ci, allowed), in.Err()
}

// summary collects what happened.
type summary struct {
	out            io.Writer
	output         map[string][]string // by package + " " + test
	passed, failed int
	skipped        []string
	failedPackages int
}

func newSummary(out io.Writer) *summary { return &summary{out: out, output: map[string][]string{}} }

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if e.Package == "" { // compiler messages and the like
			fmt.Fprint(s.out, e.Output)
			return
		}
		s.output[key] = append(s.output[key], e.Output)
		if strings.HasPrefix(strings.TrimSpace(e.Output), "FIGURE ") { // figures that tests print are always shown
			fmt.Fprint(s.out, e.Output)
		}
	case "pass":
		if e.Test != "" {
			s.passed++
			delete(s.output, key)
			return
		}
		fmt.Fprintf(s.out, "ok   %s %.1fs\n", e.Package, e.Elapsed)
	case "skip":
		if e.Test != "" {
			s.skipped = append(s.skipped, key)
			fmt.Fprintf(s.out, "skip %s: %s", key, strings.Join(s.output[key], ""))
		}
	case "fail":
		fmt.Fprint(s.out, strings.Join(s.output[key], ""))
		if e.Test != "" {
			s.failed++
			return
		}
		s.failedPackages++
		fmt.Fprintf(s.out, "FAIL %s %.1fs\n", e.Package, e.Elapsed)
	}
}

// close prints the closing line and says the exit status.
func (s *summary) close(testErr error, ci bool, allowed map[string]bool) int {
	code := 0
	if testErr != nil {
		code = 1
		if s.failed == 0 {
			s.failed = max(1, s.failedPackages)
		}
	}
	if ci {
		for _, k := range s.skipped {
			if !allowed[k] {
				fmt.Fprintf(s.out, "FAIL %s was skipped, and test/skips.txt does not name it\n", k)
				s.failed++
				code = 1
			}
		}
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, len(s.skipped))
	return code
}

func readSkips(path string) (map[string]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of skips: %w", err)
	}
	allowed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			allowed[line] = true
		}
	}
	return allowed, nil
}
