package main

import (
	"encoding/json"
	"time"
)

// request is what is asked: everything that a rendering may depend on.
type request struct {
	// Archive is the chart's .tgz.
	Archive   []byte `json:"archive"`
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// Values are read anew for each rendering: templates may write into them.
	Values       json.RawMessage `json:"values"`
	Capabilities capabilities    `json:"capabilities"`
	// Inventions are what is made up, for each rendering.
	Inventions []asked `json:"inventions"`
}

// asked is what one rendering makes up time and chance from.
type asked struct {
	// Clock is what the chart is told the time is.
	Clock time.Time `json:"clock"`
	// Seed stands in for chance.
	Seed uint64 `json:"seed"`
}

// capabilities is what the chart may ask of the cluster, exactly: nothing built in is added.
type capabilities struct {
	KubeVersion string `json:"kubeVersion"`
	// KubeMajor and KubeMinor are the server's own words, as "32+"; empty: what KubeVersion says.
	KubeMajor   string   `json:"kubeMajor"`
	KubeMinor   string   `json:"kubeMinor"`
	APIVersions []string `json:"apiVersions"`
}

// object is one rendered object with its origin.
type object struct {
	// Template is the source, as chart/templates/x.yaml.
	Template string `json:"template"`
	// Hooks are the events in Helm's words, unknown ones too; empty for an object that is no hook.
	Hooks        []string `json:"hooks"`
	Weight       int      `json:"weight"`
	DeletePolicy []string `json:"deletePolicy,omitempty"`
	// CRD says that it comes from a crds/ folder.
	CRD    bool            `json:"crd"`
	Object json.RawMessage `json:"object"`
}

// head is the line before the objects of a rendering.
type head struct {
	// Objects is how many lines of it follow.
	Objects int `json:"objects"`
	// Functions are the template functions that were called and whose value is made from Clock and Seed.
	Functions []string `json:"functions"`
	Chart     metadata `json:"chart"`
}

// same stands for a rendering whose templates printed what those of the first one did, in every byte.
const same = "same"

// metadata is what Chart.yaml says.
type metadata struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion"`
}
