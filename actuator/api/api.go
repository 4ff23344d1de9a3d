// SPDX-License-Identifier: Apache-2.0

// Package api is the actuator's face to people and programs: REST with an OpenAPI 3.1 description under
// /api/v1alpha1, the mount point of the Alertmanager webhook, the actuator's own metrics and the probes. GET never
// changes state (field rule 15). It decides nothing: approve, deny, release, stop and resume become events of the
// loop, each with the actor that the door has identified.
package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/trainyard/trainyard/actuator/api/shadow"
	"github.com/trainyard/trainyard/actuator/flow"
)

// Prefix is where the REST interface stands.
const Prefix = "/api/v1alpha1"

// Yard is what the interface needs of the loop. Its methods may be called from many goroutines; those with an actor
// return once the event is journalled.
type Yard interface {
	Incidents() []flow.View // oldest first
	Incident(id flow.ID) (flow.View, bool)
	Answer(ctx context.Context, id flow.ID, approve bool, actor string) error
	Release(ctx context.Context, id flow.ID, actor string) error
	Stop(ctx context.Context, withdraw bool, actor string) error
	Resume(ctx context.Context, actor string) error
	Stopped() (by string, stopped bool)
	Ready() error // why this process does not act; nil = it does
}

// Options are what the handler is made of.
type Options struct {
	Listen  string  // host:port, to know whether loopback rules apply
	Tokens  []Token // empty = loopback without credentials
	Version string
	Yard    Yard
	Webhook http.Handler // of intake
	Metrics http.Handler
	Now     func() time.Time
}

// Handler builds everything that the actuator serves.
func Handler(o Options) (http.Handler, error) {
	if err := CheckListen(o.Listen, len(o.Tokens) > 0); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	d := newDoor(o.Tokens)
	rest := http.NewServeMux()
	register(newREST(rest, o.Version), o)

	mux := http.NewServeMux()
	bounded := http.MaxBytesHandler(rest, maxBody)
	mux.Handle("GET "+Prefix+"/", d.require(View, bounded))
	mux.Handle(Prefix+"/", d.require(Operate, bounded))
	mux.Handle("POST /webhook/alertmanager", d.require(Alert, o.Webhook))
	mux.Handle("GET /metrics", d.require(View, o.Metrics))
	// Probes say nothing that is worth a credential, and probers have none.
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Yard.Ready(); err != nil {
			problem(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		fmt.Fprintln(w, "ready")
	})
	// A page in somebody's browser may not post with the rights of loopback.
	return http.NewCrossOriginProtection().Handler(headers(mux)), nil
}

// headers sets what every answer carries: nobody may guess types, keep, or frame what we say.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

func newREST(mux *http.ServeMux, version string) huma.API {
	c := huma.DefaultConfig("trainyard actuator", version)
	c.Info.Description = "Incidents with their whole story, and the few words that people may say to the actuator."
	c.OpenAPIPath = Prefix + "/openapi"
	c.DocsPath, c.SchemasPath = "", "" // the page of documentation would load scripts from elsewhere
	c.CreateHooks = nil                // no $schema in answers
	c.RejectUnknownQueryParameters = true
	return humago.New(mux, c)
}

// Incidents is the answer of GET incidents.
type Incidents struct {
	Incidents []flow.View `json:"incidents"`
}

// Done is the answer to every word that changed something.
type Done struct {
	Actor string `json:"actor" doc:"who did it, as the journal has it"`
}

// Status is the answer of GET status.
type Status struct {
	Version   string `json:"version"`
	Ready     bool   `json:"ready"`
	Problem   string `json:"problem,omitempty" doc:"why the actuator does not act"`
	Stopped   bool   `json:"stopped"`
	StoppedBy string `json:"stopped_by,omitempty"`
	Open      int    `json:"open_incidents"`
}

type (
	none struct{}
	byID struct {
		ID string `path:"id" maxLength:"100" doc:"id of the incident"`
	}
	answer[T any] struct{ Body T }
)

// register lists the operations, all in one place.
func register(a huma.API, o Options) {
	y := o.Yard
	get := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: Prefix + path, Summary: summary}
	}
	post := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodPost, Path: Prefix + path, Summary: summary, Errors: []int{404, 409, 503}, MaxBodyBytes: maxWord}
	}

	huma.Register(a, get("get-status", "/status", "Whether the actuator acts, and if not, why"),
		func(context.Context, *none) (*answer[Status], error) {
			s := Status{Version: o.Version, Ready: true}
			if err := y.Ready(); err != nil {
				s.Ready, s.Problem = false, err.Error()
			}
			s.StoppedBy, s.Stopped = y.Stopped()
			for _, v := range y.Incidents() {
				if !v.Over {
					s.Open++
				}
			}
			return &answer[Status]{s}, nil
		})

	huma.Register(a, get("list-incidents", "/incidents", "Incidents, newest first"),
		func(_ context.Context, in *struct {
			Open  bool `query:"open" doc:"only incidents that are not over"`
			Limit int  `query:"limit" default:"500" minimum:"1" maximum:"10000" doc:"at most so many"`
		}) (*answer[Incidents], error) {
			vs := slices.DeleteFunc(y.Incidents(), func(v flow.View) bool { return in.Open && v.Over })
			slices.Reverse(vs)
			if len(vs) > in.Limit {
				vs = vs[:in.Limit]
			}
			if vs == nil {
				vs = []flow.View{}
			}
			return &answer[Incidents]{Incidents{vs}}, nil
		})

	huma.Register(a, get("get-incident", "/incidents/{id}", "One incident with its whole story"),
		func(_ context.Context, in *byID) (*answer[flow.View], error) {
			v, err := find(y, in.ID)
			return &answer[flow.View]{v}, err
		})

	for _, word := range []struct {
		name, summary string
		approve       bool
	}{{"approve", "Approve the plan of an incident that asks", true}, {"deny", "Deny the plan of an incident that asks", false}} {
		huma.Register(a, post(word.name+"-incident", "/incidents/{id}/"+word.name, word.summary),
			func(ctx context.Context, in *byID) (*answer[Done], error) {
				v, err := find(y, in.ID)
				if err != nil {
					return nil, err
				}
				if v.State != flow.Asked {
					return nil, huma.Error409Conflict(fmt.Sprintf("incident %s asks nothing: it is %s", v.ID, v.State))
				}
				return done(ctx, y.Answer(ctx, v.ID, word.approve, actor(ctx)))
			})
	}

	huma.Register(a, post("release-incident", "/incidents/{id}/release", "Take an incident over or give it back: its routes are withdrawn"),
		func(ctx context.Context, in *byID) (*answer[Done], error) {
			v, err := find(y, in.ID)
			if err != nil {
				return nil, err
			}
			if v.Over && v.State != flow.Handed {
				return nil, huma.Error409Conflict(fmt.Sprintf("incident %s is over: it is %s", v.ID, v.State))
			}
			return done(ctx, y.Release(ctx, v.ID, actor(ctx)))
		})

	huma.Register(a, post("stop", "/stop", "Take no new step until resumed; never blocks an undo"),
		func(ctx context.Context, in *struct {
			Body struct {
				Withdraw bool `json:"withdraw,omitempty" doc:"also withdraw every route"`
			}
		}) (*answer[Done], error) {
			err := y.Stop(ctx, in.Body.Withdraw, actor(ctx))
			if err != nil && in.Body.Withdraw {
				err = fmt.Errorf("%w; the routes are taken back all the same, the stop does not last", err)
			}
			return done(ctx, err)
		})

	resume := post("resume", "/stop", "Lift a stop")
	resume.Method = http.MethodDelete
	huma.Register(a, resume, func(ctx context.Context, _ *none) (*answer[Done], error) {
		return done(ctx, y.Resume(ctx, actor(ctx)))
	})

	huma.Register(a, get("get-shadow", "/shadow", "What watch mode would have done, and how often it would have been right"),
		func(_ context.Context, in *struct {
			Since string `query:"since" default:"24h" maxLength:"40" doc:"a duration to look back, or a time in RFC 3339"`
		}) (*answer[shadow.Report], error) {
			now := o.Now()
			since, err := parseSince(in.Since, now)
			if err != nil {
				return nil, huma.Error422UnprocessableEntity("since: " + err.Error())
			}
			return &answer[shadow.Report]{shadow.Make(y.Incidents(), since, now)}, nil
		})
}

func find(y Yard, id string) (flow.View, error) {
	v, ok := y.Incident(flow.ID(id))
	if !ok {
		return flow.View{}, huma.Error404NotFound(fmt.Sprintf("there is no incident %q", id))
	}
	return v, nil
}

// ErrConflict is wrapped by a Yard's error if the incident is not in a state for what was asked.
var ErrConflict = errors.New("not possible in this state")

// done answers once the event is journalled. If it could not be, the caller may try again.
func done(ctx context.Context, err error) (*answer[Done], error) {
	switch {
	case errors.Is(err, ErrConflict):
		return nil, huma.Error409Conflict(err.Error())
	case err != nil:
		return nil, huma.Error503ServiceUnavailable("not journalled: " + err.Error())
	}
	return &answer[Done]{Done{actor(ctx)}}, nil
}

func parseSince(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return time.Time{}, errors.New("want a positive duration")
		}
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a duration such as 24h nor a time such as 2026-11-30T12:00:00Z", s)
	}
	return t, nil
}
