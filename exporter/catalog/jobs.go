// SPDX-License-Identifier: Apache-2.0

package catalog

var rankLabels = []string{"job_id", "gang", "rank", "node"}

var jobs = Family{
	Title: "Training jobs",
	About: "From the reports that training processes leave for the node role (package exporter/source/job). Counters start with the process.",
	Rows: []Row{
		{Name: "trainyard_job_info", Help: "A running job: shape of its collective, number of ranks, connections per neighbour and rail.", Kind: Info,
			Labels: []string{"job_id", "gang", "collective", "ranks", "connections"}},
		{Name: "trainyard_job_rank_address_info", Help: "Address that a rank uses on a rail.", Kind: Info, Labels: []string{"job_id", "gang", "rank", "node", "rail", "address"}},
		{Name: "trainyard_job_steps_total", Help: "Training steps that the rank has finished.", Kind: Counter, Labels: rankLabels},
		{Name: "trainyard_job_step_seconds_total", Help: "Time spent in finished steps.", Unit: Seconds, Kind: Counter, Labels: rankLabels},
		{Name: "trainyard_job_compute_seconds_total", Help: "Part of the step time in which the rank computed.", Unit: Seconds, Kind: Counter, Labels: rankLabels},
		{Name: "trainyard_job_collective_seconds_total", Help: "Part of the step time in which the rank synchronised gradients.", Unit: Seconds, Kind: Counter, Labels: rankLabels},
		{Name: "trainyard_job_collective_bytes_total", Help: "Payload that the rank has sent on the rail.", Unit: Bytes, Kind: Counter, Labels: []string{"job_id", "gang", "rank", "node", "rail"}},
		{Name: "trainyard_job_reports_dropped", Help: "Report files that are there but not used, by reason: stale, future, garbage or conflict.", Kind: Gauge, Labels: []string{"node", "reason"}},
	},
}

var exporters = Family{
	Title: "The exporter itself",
	About: "By both roles.",
	Rows: []Row{
		{Name: "trainyard_source_success", Help: "1 if the last read of the source succeeded in time, else 0.", Kind: Gauge, Labels: []string{"source"}},
		{Name: "trainyard_source_duration_seconds", Help: "Time that the last read of the source took, or has taken so far if it is stuck.", Unit: Seconds, Kind: Gauge, Labels: []string{"source"}},
		{Name: "trainyard_source_last_success_timestamp_seconds", Help: "When the source was last read with success, Unix time; absent before the first.", Unit: Seconds, Kind: Gauge, Labels: []string{"source"}},
		{Name: "trainyard_exporter_build_info", Help: "The binary that runs.", Kind: Info, Labels: []string{"version", "revision", "goversion", "role"}},
	},
}

var actuator = Family{
	Title: "The actuator itself",
	About: "Exposed by the actuator, not by an exporter.",
	Rows: []Row{
		{Name: "trainyard_incidents", Help: "Incidents that are open, by state.", Kind: Gauge, Labels: []string{"state"}},
		{Name: "trainyard_incidents_total", Help: "Incidents that ended, by outcome.", Kind: Counter, Labels: []string{"outcome"}},
		{Name: "trainyard_actuator_routes_desired", Help: "Routes in the table of desired state.", Kind: Gauge},
		{Name: "trainyard_actuator_routes_installed", Help: "Routes that the driver read back as installed.", Kind: Gauge},
		{Name: "trainyard_actuator_mode", Help: "1 for the mode that a pool is in, 0 for the others.", Kind: Gauge, Labels: []string{"pool", "mode"}},
		{Name: "trainyard_intake_deliveries_total", Help: "Webhook deliveries, by what became of them.", Kind: Counter, Labels: []string{"result"}},
		{Name: "trainyard_journal_append_duration_seconds", Help: "Time to append to the journal, fsync included.", Unit: Seconds, Kind: Histogram},
		{Name: "trainyard_actuator_refusals_total", Help: "Plans that the guard refused, by reason.", Kind: Counter, Labels: []string{"reason"}},
		{Name: "trainyard_forecast_error_ratio", Help: "Measured gain over forecast gain, minus one, of verified incidents.", Unit: Ratio, Kind: Histogram},
	},
}
