package sablier

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// dynamic answers at once: ready, or a page that looks again.
func (a *API) dynamic(w http.ResponseWriter, r *http.Request) {
	q, p, wrong := a.understand(r)
	if wrong == nil {
		wrong = checkTheme(q.theme)
	}
	if wrong != nil {
		a.dynamicCalls.refused.Inc()
		fail(w, r, *wrong)
		return
	}
	_ = pass(r.Context(), p.optional, q.keep)
	if parts := lookAt(r.Context(), p, q.keep); parts != nil {
		a.dynamicCalls.notReady.Inc()
		answerNotReady(w, r, &q, parts)
		return
	}
	a.dynamicCalls.ready.Inc()
	if wantsHTML(r.Header) {
		writeHTML(w, headerReady, readyPage)
	} else {
		writeReady(w, p)
	}
}

func answerNotReady(w http.ResponseWriter, r *http.Request, q *query, parts []instanceInfo) {
	if wantsHTML(r.Header) {
		writeHTML(w, headerNotReady, renderPage(q, parts))
	} else {
		writeNotReady(w, parts)
	}
}

// checkTheme refuses one that there is not, as Sablier does; none is ours.
func checkTheme(name string) *problem {
	if name == "" || slices.Contains(themeNames, name) {
		return nil
	}
	return &problem{Status: http.StatusNotFound, id: "theme-not-found", Title: "Theme not found",
		Detail: "there is no theme " + quoted(name), RequestTheme: name, AvailableTheme: themeNames}
}

// lookAt asks for all of them, and tells how each of them is; nil if all are
// ready.
func lookAt(ctx context.Context, p party, keep time.Duration) (parts []instanceInfo) {
	not := pass(ctx, p.gating, keep)
	if not == nil {
		return nil
	}
	for _, m := range slices.Concat(p.gating, p.optional) {
		part := m.info()
		if part.Message == "" && not.member == m && !errors.Is(not, activator.ErrHoldTimeout) {
			part.Message = problemOf(m, not.err).Detail
		}
		parts = append(parts, part)
	}
	return parts
}

// info is the member by the last news of it.
func (m *member) info() instanceInfo {
	part := instanceInfo{Name: m.name, DesiredReplicas: m.replicas}
	if part.Status, part.Message = m.now(); part.Status == statusReady {
		part.CurrentReplicas = m.replicas
	}
	return part
}

// now is how the member is, by the last news of it.
func (m *member) now() (s status, trouble string) {
	st := m.gate.State()
	switch st.Phase {
	case workload.Ready:
		return statusReady, ""
	case workload.Failed:
		return statusError, st.Reason.String()
	}
	return statusStarting, ""
}
