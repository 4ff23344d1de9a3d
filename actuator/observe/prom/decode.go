// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Sample is one series of an instant vector.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// answer is the envelope of /api/v1/query. Newer servers add members to it; inside a sample nothing unknown is
// accepted.
type answer struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Error     string   `json:"error"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		ResultType string         `json:"resultType"`
		Result     jsontext.Value `json:"result"`
	} `json:"data"`
}

// Labels and value are pointers and raw values because the decoder would turn a null into an empty string.
type rawSample struct {
	Metric map[string]*string `json:"metric"`
	Value  []jsontext.Value   `json:"value"`
}

func decodeAnswer(body []byte, resultType string) (answer, error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return answer{}, fmt.Errorf("decode answer: %w", err)
	}
	if a.Status != "success" {
		return answer{}, fmt.Errorf("status %q: %s", clip(a.Status), clip(a.Error))
	}
	if a.Data.ResultType != resultType {
		return answer{}, fmt.Errorf("answer is a %q, want a %s", clip(a.Data.ResultType), resultType)
	}
	return a, nil
}

// decodeVector reads an instant vector that must have been evaluated at the time that was asked for.
func decodeVector(body []byte, at time.Time) ([]Sample, []string, error) {
	a, err := decodeAnswer(body, "vector")
	if err != nil {
		return nil, nil, err
	}
	var raw []rawSample
	if err := json.Unmarshal(a.Data.Result, &raw, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, fmt.Errorf("decode vector: %w", err)
	}
	samples := make([]Sample, 0, len(raw))
	for i, r := range raw {
		labels, err := decodeLabels(r.Metric)
		if err != nil {
			return nil, nil, fmt.Errorf("decode vector: sample %d: %w", i, err)
		}
		t, value, err := decodePoint(r.Value)
		if err != nil {
			return nil, nil, fmt.Errorf("decode vector: sample %d: %w", i, err)
		}
		if !t.Equal(at) {
			return nil, nil, fmt.Errorf("decode vector: sample %d is of %s, asked for %s", i, t.UTC().Format(time.StampMilli), at.UTC().Format(time.StampMilli))
		}
		samples = append(samples, Sample{labels, value})
	}
	return samples, a.Warnings, nil
}

func decodeLabels(metric map[string]*string) (map[string]string, error) {
	labels := make(map[string]string, len(metric))
	for name, value := range metric {
		if value == nil {
			return nil, fmt.Errorf("label %q is null", clip(name))
		}
		labels[name] = *value
	}
	return labels, nil
}

// decodeTime reads the answer to time().
func decodeTime(body []byte) (time.Time, error) {
	a, err := decodeAnswer(body, "scalar")
	if err != nil {
		return time.Time{}, err
	}
	var raw []jsontext.Value
	if err := json.Unmarshal(a.Data.Result, &raw); err != nil {
		return time.Time{}, fmt.Errorf("decode scalar: %w", err)
	}
	t, _, err := decodePoint(raw)
	return t, err
}

// decodePoint reads [seconds, "value"].
func decodePoint(raw []jsontext.Value) (time.Time, float64, error) {
	if len(raw) != 2 {
		return time.Time{}, 0, fmt.Errorf("a point has %d members, want [time, value]", len(raw))
	}
	var seconds float64
	if err := json.Unmarshal(raw[0], &seconds); err != nil || raw[0].Kind() != '0' {
		return time.Time{}, 0, errors.New("the time of a point is not a number")
	}
	// Beyond this a millisecond count no longer fits exactly in a float64.
	if seconds <= 0 || seconds > 1<<43/1000 {
		return time.Time{}, 0, fmt.Errorf("the time of a point, %g, is no time", seconds)
	}
	var text string
	if err := json.Unmarshal(raw[1], &text); err != nil || raw[1].Kind() != '"' {
		return time.Time{}, 0, errors.New("the value of a point is not a string")
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}, 0, fmt.Errorf("the value of a point, %q, is not a number", clip(text))
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), value, nil
}

// decodeError digs the reason out of a refused request, without trusting that it is Prometheus who speaks.
func decodeError(body []byte) string {
	var a answer
	if json.Unmarshal(body, &a) == nil && a.Error != "" {
		return clip(a.ErrorType + ": " + a.Error)
	}
	text := strings.TrimSpace(string(body))
	if text == "" {
		return "no reason given"
	}
	return strconv.Quote(clip(text))
}

// clip keeps what others wrote from filling our journal.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return strings.ToValidUTF8(s, "?")
	}
	return strings.ToValidUTF8(s[:most], "?") + "..."
}
