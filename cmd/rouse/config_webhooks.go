package main

import (
	"fmt"
	"net/url"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/webhook"
	"github.com/rouse-dev/rouse/workload"
)

// webhookTable binds the keys of one webhook.
func webhookTable(w *WebhookConfig) strict.Table {
	return strict.Table{
		{Name: "name", Doc: "Name in metrics and problems, by which is remembered what was sent; by default the host of url.", Value: strict.One(&w.Name, strict.Text(workload.ValidName))},
		{Name: "url", Doc: "Address that takes a POST of each event.", Value: strict.One(&w.URL, strict.Text(webhookURL))},
		{Name: "secret_file", Doc: "File of the secret that signs, whsec_ and base64 of at least 24 bytes; a line each for several.", Value: strict.One(&w.SecretFile, strict.Text(filled))},
		{Name: "kinds", Doc: "Kinds of events that are sent; none means all.", Value: strict.Many(&w.Kinds, strict.List, strict.Enum(workload.EventKinds()...))},
		{Name: "workloads", Doc: "Workloads whose events are sent; none means all.", Value: strict.Many(&w.Workloads, strict.List, strict.Text(workload.ValidName))},
	}
}

// webhookURL accepts http and https. A message never repeats a URL: it may
// hold a password.
func webhookURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &strict.Wrong{Message: "it is not the URL of a receiver", Fix: "write https://host/path or http://host/path"}
	}
	return nil
}

// webhooksValue reads the list of webhooks, each with a table of its own.
func webhooksValue(hooks *[]WebhookConfig) strict.Value {
	item := webhookTable(&WebhookConfig{}).Schema()
	item["required"] = []string{"url", "secret_file"}
	return strict.Value{
		Shape:  strict.Opaque,
		Schema: map[string]any{"type": "array", "items": item},
		Node: func(file string, node *yaml.Node) []strict.Problem {
			read, wrong := readWebhooks(file, node)
			*hooks = read
			return wrong
		},
	}
}

// readWebhooks reads the list. A webhook that has a problem is left out.
func readWebhooks(file string, list *yaml.Node) ([]WebhookConfig, []strict.Problem) {
	kind := strict.ItemKind{List: "webhooks", Item: "webhook", Key: "url"}
	return strict.Items(file, list, kind, func(place string, node *yaml.Node) (WebhookConfig, []strict.Problem) {
		return readWebhook(file, place, node)
	})
}

func readWebhook(file, place string, node *yaml.Node) (WebhookConfig, []strict.Problem) {
	w := WebhookConfig{place: place}
	if _, wrong := webhookTable(&w).Decode(file, node); len(wrong) > 0 {
		return w, wrong // what is missing may be missing for that reason
	}
	if w.URL == "" {
		return w, []strict.Problem{{Place: w.place, Message: "a webhook has no url", Fix: "add url: https://…"}}
	}
	if w.SecretFile == "" {
		return w, []strict.Problem{{Place: w.place, Message: "a webhook has no secret_file", Fix: "add secret_file: with a file that `openssl rand -base64 32` has written"}}
	}
	if w.Name == "" {
		u, err := url.Parse(w.URL)
		if err != nil || workload.ValidName(u.Hostname()) != nil {
			return w, []strict.Problem{{Place: w.place, Message: "the host of url is no name", Fix: "add name: …"}}
		}
		w.Name = u.Hostname()
	}
	return w, nil
}

// validateWebhooks refuses two of one name, and secrets that cannot be used.
func (c *Config) validateWebhooks(p *problems) {
	places := map[string]string{} // name -> place
	for _, w := range c.Webhooks {
		if first, taken := places[w.Name]; taken {
			p.add(w.place, fmt.Sprintf("the name %s is that of another webhook (%s)", w.Name, first), "give one of them another name: …")
		}
		places[w.Name] = w.place
		if _, err := w.secrets(); err != nil {
			p.add(w.place, fmt.Sprintf("secret_file %s: %s", w.SecretFile, bare(err)), "let `openssl rand -base64 32` write it")
		}
	}
}

func (w WebhookConfig) secrets() ([][]byte, error) {
	text, err := readFile(w.SecretFile)
	if err != nil {
		return nil, err
	}
	return webhook.ParseSecrets(string(text))
}

// settings are the values by key, in the order of the table, as a file has
// them; what was left to its default is left out.
func (w WebhookConfig) settings() []setting {
	all := []setting{{"name", w.Name}, {"url", redactURL(w.URL)}, {"secret_file", w.SecretFile}}
	if len(w.Kinds) > 0 {
		all = append(all, setting{"kinds", w.Kinds})
	}
	if len(w.Workloads) > 0 {
		all = append(all, setting{"workloads", w.Workloads})
	}
	return all
}

type setting struct {
	key   string
	value any
}

// webhookViews are webhooks fit for JSON, without passwords.
func webhookViews(hooks []WebhookConfig) []map[string]any {
	views := []map[string]any{}
	for _, w := range hooks {
		view := map[string]any{}
		for _, s := range w.settings() {
			view[s.key] = s.value
		}
		views = append(views, view)
	}
	return views
}

// webhookNodes are webhooks as YAML, without passwords.
func webhookNodes(hooks []WebhookConfig, origins bool) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, w := range hooks {
		item := &yaml.Node{Kind: yaml.MappingNode}
		for _, s := range w.settings() {
			value := &yaml.Node{}
			_ = value.Encode(s.value) // texts and lists of them cannot fail
			item.Content = append(item.Content, keyNode(s.key), value)
		}
		if origins {
			item.Content[1].LineComment = w.place
		}
		list.Content = append(list.Content, item)
	}
	return list
}
