package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

var (
	// ErrUnreachable is wrapped by errors of an engine that does not answer.
	// It is a scaler.ErrAway.
	ErrUnreachable error = unreachable{}
	// ErrWatched is returned by a Watch while another is under way.
	ErrWatched = errors.New("docker: watched already")

	// errGone: the container does not exist, or is about to be removed.
	errGone = errors.New("no such container")
)

type unreachable struct{}

func (unreachable) Error() string { return "docker engine unreachable" }

func (unreachable) Is(target error) bool { return target == scaler.ErrAway }

// tell turns an error of the client into one of this package.
func (e *engine) tell(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		// The caller's own end, whatever the client makes of it: a dial that
		// it cuts short looks like an engine out of reach.
		return fmt.Errorf("%w: %s", ctx.Err(), words(err))
	case client.IsErrConnectionFailed(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w at %s: %s", ErrUnreachable, e.host(), e.diagnose(ctx, err))
	case errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such container"):
		return errGone
	}
	return err
}

// diagnose finds out why the engine is out of reach, in words for whoever
// has to mend it. The client's error has lost the cause by now, so it dials.
func (e *engine) diagnose(ctx context.Context, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err // without a URL of several lines
	}
	path, ok := strings.CutPrefix(e.host(), "unix://")
	if !ok {
		return words(err)
	}
	conn, dialErr := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case dialErr == nil:
		_ = conn.Close()
		return words(err)
	case errors.Is(dialErr, fs.ErrNotExist):
		return "there is no such socket: is Docker installed and running?"
	case errors.Is(dialErr, fs.ErrPermission):
		return "permission denied: run as root or as a member of the socket's group"
	case errors.Is(dialErr, syscall.ECONNREFUSED):
		return "nobody listens on the socket: is Docker running?"
	}
	return dialErr.Error()
}

// words are the engine's own, in one line.
func words(err error) string {
	said := strings.Join(strings.Fields(err.Error()), " ")
	return strings.TrimPrefix(said, "Error response from daemon: ")
}

// refused is the error of a start that the engine refused with err.
func refused(name string, err error) error {
	return &scaler.StartError{Reason: workload.Reason{
		Code:   workload.ReasonStartError,
		Detail: fmt.Sprintf("container %s: %s", name, words(err)),
	}}
}

// missing is the error of a start that found nothing to start.
func missing(w workload.Workload, prefix string) error {
	detail := fmt.Sprintf("no container carries the labels %senable=true and %sname=%s", prefix, prefix, w.Name)
	switch {
	case w.Container != "":
		detail = fmt.Sprintf("no container is named %s", w.Container)
	case w.Service != "":
		detail = fmt.Sprintf("no container belongs to the compose service %s", w.Service)
	}
	return &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonNotFound, Detail: detail}}
}

// over is the error of a start whose container is not up after it.
func over(r record) error {
	reason := workload.Reason{Code: workload.ReasonExited, ExitCode: r.exitCode}
	if r.oom {
		reason.Code = workload.ReasonOOM
	}
	reason.Detail = fmt.Sprintf("container %s ended as soon as it was started", r.Name)
	switch r.state {
	case statePaused:
		reason.Detail = fmt.Sprintf("container %s was paused by somebody as soon as it was resumed", r.Name)
	case stateThrottled:
		reason.Detail = fmt.Sprintf("container %s was throttled by somebody as soon as it was woken", r.Name)
	case stateRestarting:
		reason.Detail = fmt.Sprintf("container %s keeps ending; its restart policy has restarted it %d times", r.Name, r.restarts)
	}
	if r.complaint != "" {
		reason.Detail = fmt.Sprintf("container %s: %s", r.Name, r.complaint)
	}
	return &scaler.StartError{Reason: reason}
}
