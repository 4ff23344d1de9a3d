// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"syscall"
)

// dieWithUs keeps the terminal's Ctrl-C from the child, since we stop it ourselves and in order, and has the kernel end it
// should we be killed. (The death signal is the parent thread's; threads of this program last as long as it does.)
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
