package events

import (
	"fmt"
	"strings"
)

// The streams; a bucket is a stream with a prefix.
const (
	streamWakes     = "ROUSE_WAKES"
	streamEvents    = "ROUSE_EVENTS"
	streamActivity  = "ROUSE_ACTIVITY"
	bucketStates    = "ROUSE_STATE"
	bucketWorkloads = "ROUSE_WORKLOADS"
	bucketProblems  = "ROUSE_PROBLEMS"

	streamStates    = "KV_" + bucketStates
	streamWorkloads = "KV_" + bucketWorkloads
	streamProblems  = "KV_" + bucketProblems
)

// streamNames are all of them.
var streamNames = []string{streamWakes, streamEvents, streamActivity, streamStates, streamWorkloads, streamProblems}

// The subjects, each without its last tokens: the encoded names.
const (
	subjectWake     = "rouse.v1.wake"     // .<node>.<workload>
	subjectState    = "rouse.v1.state"    // .<workload>; only the server publishes
	subjectWorkload = "rouse.v1.workload" // .<workload>; only the server publishes
	subjectProblems = "rouse.v1.problems" // .<node>; only the server publishes
	subjectActivity = "rouse.v1.activity" // .<gateway>
	subjectHeard    = "rouse.v1.heard"    // .<gateway>; only the server publishes
	subjectDrain    = "rouse.v1.drain"    // .<workload>
	subjectEvent    = "rouse.v1.event"    // .<workload>.<kind>
	subjectRecorded = "rouse.v1.recorded" // .<workload>.<kind>; only the server publishes
	subjectSleep    = "rouse.v1.sleep"    // .<node>.<workload>
	subjectKeep     = "rouse.v1.keep"     // .<node>.<workload>
	subjectLogs     = "rouse.v1.logs"     // .<node>.<workload>

	keyStates    = "$KV." + bucketStates    // .<workload>
	keyWorkloads = "$KV." + bucketWorkloads // .<workload>
	keyProblems  = "$KV." + bucketProblems  // .<node>
)

// The JetStream API, each without the stream's name.
const (
	apiAccount        = "$JS.API.INFO" // as it is
	apiInfo           = "$JS.API.STREAM.INFO."
	apiCreate         = "$JS.API.STREAM.CREATE."
	apiUpdate         = "$JS.API.STREAM.UPDATE."
	apiRead           = "$JS.API.DIRECT.GET."     // any replica; a subject may follow
	apiReadLeader     = "$JS.API.STREAM.MSG.GET." // the leader alone
	apiConsumerInfo   = "$JS.API.CONSUMER.INFO."
	apiConsumerCreate = "$JS.API.CONSUMER.CREATE."
	apiConsumerNext   = "$JS.API.CONSUMER.MSG.NEXT."
)

// subject puts names behind a base, each as one token.
func subject(base string, names ...string) string {
	for _, name := range names {
		base += "." + encodeToken(name)
	}
	return base
}

// consumerOf names the consumer of a node's wakes.
func consumerOf(node string) string { return "scaler-" + encodeToken(node) }

// parseSubject gives back the n names behind base.
func parseSubject(base, subject string, n int) ([]string, error) {
	rest, ok := strings.CutPrefix(subject, base+".")
	tokens := strings.Split(rest, ".")
	if !ok || len(tokens) != n {
		return nil, fmt.Errorf("%w subject: %q is not %s and %d names", ErrMalformed, subject, base, n)
	}
	for i, token := range tokens {
		name, err := decodeToken(token)
		if err != nil {
			return nil, fmt.Errorf("subject %q: %w", subject, err)
		}
		tokens[i] = name
	}
	return tokens, nil
}

// parseName is parseSubject for one name.
func parseName(base, subject string) (string, error) {
	names, err := parseSubject(base, subject, 1)
	if err != nil {
		return "", err
	}
	return names[0], nil
}
