// A supervisor with hard-coded limits: 180 s of silence, 5 s between TERM and KILL.
package main

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	agent := exec.Command(os.Args[1], os.Args[2:]...)
	agent.Stderr = os.Stderr
	agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, _ := agent.StdoutPipe()
	if agent.Start() != nil {
		os.Exit(1)
	}
	news := make(chan bool)
	go func() {
		defer close(news)
		piece := make([]byte, 65536)
		for {
			if n, err := out.Read(piece); n == 0 || err != nil {
				return
			}
			news <- true
		}
	}()
	silence := time.NewTimer(180 * time.Second)
	for {
		select {
		case _, isOpen := <-news:
			if !isOpen {
				agent.Wait()
				os.Exit(agent.ProcessState.ExitCode())
			}
			silence.Reset(180 * time.Second)
		case <-silence.C:
			syscall.Kill(-agent.Process.Pid, syscall.SIGTERM)
			kill := time.AfterFunc(5*time.Second, func() { syscall.Kill(-agent.Process.Pid, syscall.SIGKILL) })
			for range news {
			}
			agent.Wait()
			kill.Stop()
			os.Exit(124)
		}
	}
}
