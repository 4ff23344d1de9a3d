// SPDX-License-Identifier: Apache-2.0

package rules

// Profile is what differs between the yard of a customer and the lab on a laptop. Durations are spelled as Prometheus
// spells them. Thresholds do not differ: a lab that judges by other limits would prove nothing.
type Profile struct {
	Name string

	Scrape   string // how often exporters are read
	Interval string // how often rules are evaluated

	// Window of every rate. At least four scrapes, so that one lost scrape leaves a rate; and the shortest in which a
	// job must have finished three steps before it can be called a victim (jobs with steps longer than a third of the
	// window are not judged).
	Window string

	// Baseline is how far back the usual step time of a job is looked up, as its tenth percentile: a job that stays
	// congested takes 90 % of Baseline (or of its life, if that is shorter) to have its slow steps called usual.
	Baseline string

	// Warmup is how long a job must have been seen before it has a usual step time at all: the first steps after a start
	// are slow by themselves.
	Warmup string

	FlapWindow   string // link flaps are counted over this
	MemoryWindow string // failed huge-page allocations are counted over this

	CongestedFor   string // how long a link must be congested before the alert fires
	ImbalanceFor   string
	FragmentedFor  string
	UnreachableFor string
	DownFor        string

	// KeepFiring holds a link alert through short recoveries, so that one congestion is one episode (fingerprint and
	// start time stay) and Alertmanager does not swallow the second firing in its group interval. It delays "resolved"
	// by as much, which costs nothing: the actuator takes "resolved" as a hint and measures by itself.
	KeepFiring string
}

// Profiles are the two that are rendered.
//
// Production: a rate over four scrapes of 15 s. Lab: two seconds of half-second scrapes, because there the goal is
// five seconds from congestion to a verified cure; its jobs step in a fraction of a second.
var Profiles = []Profile{
	{
		Name: "production", Scrape: "15s", Interval: "15s", Window: "1m", Baseline: "6h", Warmup: "2m", FlapWindow: "10m", MemoryWindow: "5m",
		CongestedFor: "1m", ImbalanceFor: "10m", FragmentedFor: "10m", UnreachableFor: "2m", DownFor: "2m", KeepFiring: "3m",
	},
	{
		Name: "lab", Scrape: "500ms", Interval: "500ms", Window: "2s", Baseline: "5m", Warmup: "3s", FlapWindow: "30s", MemoryWindow: "10s",
		CongestedFor: "500ms", ImbalanceFor: "10s", FragmentedFor: "5s", UnreachableFor: "3s", DownFor: "3s", KeepFiring: "3s",
	},
}

// Signals are the signs that a job suffers, as level:metric of the recorded series at ports and links, each with the
// series of the job that it comes from. A map: templates range over it in the order of its keys.
func (Profile) Signals() map[string]string {
	return map[string]string{
		"job_victims:max": "job:step_slowdown:ratio",
		"job_ecn:max":     "job:ecn:max",
		"job_pause:max":   "job:pause:max",
	}
}

// Lookup finds a profile by name.
func Lookup(name string) (Profile, bool) {
	for _, p := range Profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}
