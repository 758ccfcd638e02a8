package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/offlab/offlab/internal/agent"
	"github.com/offlab/offlab/internal/app"
	"github.com/offlab/offlab/internal/runner"
	"github.com/offlab/offlab/internal/study"
	"github.com/offlab/offlab/internal/sys/proc"
)

// Exit statuses of every command.
const (
	ExitOK        = 0   // done, and every verdict is good
	ExitVerdict   = 1   // a verdict says wrong or worse
	ExitUsage     = 2   // the arguments do not make sense
	ExitError     = 3   // something of ours broke
	ExitEnv       = 4   // the environment lacks something, named
	ExitInterrupt = 130 // ended by Ctrl-C, as shells count it
)

// version is set by the linker.
var version = "dev"

// A status ends the program with an exit status and no message of its own.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// console is the streams and surroundings of one call of the program.
type console struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	args     []string
}

// Main runs the offlab command and returns its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), proc.Endings...)
	defer stop()
	c := &console{stdin, stdout, stderr, os.Getenv, args}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := statusOf(err)
	var s status
	if err != nil && !errors.As(err, &s) {
		fmt.Fprintln(stderr, "offlab:", strings.TrimSpace(err.Error()))
	}
	return code
}

// statusOf classifies an error.
func statusOf(err error) int {
	var s status
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &s):
		return int(s)
	}
	var format *study.FormatError
	var cut *study.TruncatedError
	var newer *study.VersionError
	if errors.As(err, &format) || errors.As(err, &cut) || errors.As(err, &newer) {
		return ExitUsage
	}
	if errors.Is(err, runner.ErrGone) {
		return ExitEnv
	}
	switch agent.KindOf(err) {
	case agent.KindUsage:
		return ExitUsage
	case agent.KindEnv, agent.KindBusy, agent.KindGone:
		return ExitEnv
	case agent.KindInternal:
	}
	return ExitError
}

// usagef is an error of the arguments.
func usagef(format string, a ...any) error {
	return &agent.Error{Kind: agent.KindUsage, Text: fmt.Sprintf(format, a...)}
}

const about = `offlab answers, for one network offload on one device, path and kernel:
does it act, is it right, is it worth it - here?

It toggles the offload between randomised blocks of real traffic, proves that
the knob took effect, checks every byte, and stops as soon as the answer is
certain. Everything it changes is put back.

Exit status: 0 done and every verdict good; 1 a verdict says wrong or worse;
2 usage; 3 internal error; 4 the environment lacks something, named;
130 interrupted.`

func (c *console) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "offlab",
		Short:         "Does this network offload act, is it right, is it worth it - here?",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v\nSee '%s --help'.", err, cmd.CommandPath())
	})
	root.AddCommand(c.runCommand(), c.reportCommand(), c.restoreCommand(), c.listCommand(),
		c.featuresCommand(), c.nicCommand(),
		c.agentCommand(), c.guardCommand(), c.versionCommand())
	for _, cmd := range append(root.Commands(), root) {
		wrapArgs(cmd)
	}
	return root
}

// wrapArgs makes the errors of cobra's argument checks usage errors.
func wrapArgs(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil {
		return
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usagef("%v\nSee '%s --help'.", err, cmd.CommandPath())
		}
		return nil
	}
}

// program describes this program to the parts.
func (c *console) program() (app.Program, error) {
	exe, err := os.Executable()
	if err != nil {
		return app.Program{}, err
	}
	state, err := app.StateDir(c.getenv("XDG_STATE_HOME"), c.getenv("HOME"), os.Geteuid())
	return app.Program{Version: version, Exe: exe, State: state, Now: time.Now}, err
}

func (c *console) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.out, "offlab", version)
			return err
		},
	}
}
