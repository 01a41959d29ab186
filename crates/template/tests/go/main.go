// Renders templates with real Go: a JSON line {"template", "data"} in, a JSON line {"ok", "text"} out.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

type task struct {
	Template string `json:"template"`
	Data     any    `json:"data"`
}

type answer struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

func render(t task) (answer, error) {
	parsed, err := template.New("the text").Option("missingkey=error").Funcs(sprig.TxtFuncMap()).Parse(t.Template)
	if err != nil {
		return answer{}, err
	}
	var out strings.Builder
	if err := parsed.Execute(&out, t.Data); err != nil {
		return answer{}, err
	}
	return answer{OK: true, Text: out.String()}, nil
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var t task
		if err := json.Unmarshal(in.Bytes(), &t); err != nil {
			panic(err)
		}
		a, err := render(t)
		if err != nil {
			a.Text = err.Error()
		}
		if err := out.Encode(a); err != nil {
			panic(err)
		}
	}
}
