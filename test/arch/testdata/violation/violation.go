// SPDX-License-Identifier: Apache-2.0

// Package violation breaks the import rules on purpose: the test in test/arch must find it.
package violation

import (
	"math/rand/v2"
	"net/http"
	"os/exec"
	"time"
)

// Broken reaches the world from where only thinking is allowed.
func Broken() (time.Time, int, *http.Client, *exec.Cmd) {
	return time.Now(), rand.IntN(2), http.DefaultClient, exec.Command("true")
}
