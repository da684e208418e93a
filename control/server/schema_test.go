package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// described returns the schemas of the API's description.
func described(t *testing.T) huma.Registry {
	t.Helper()
	config := huma.DefaultConfig("test", "1")
	config.CreateHooks = nil
	api := humago.New(http.NewServeMux(), config)
	for _, add := range resources {
		add(api, fixed(sample()))
	}
	addApply(api, fixed(sample()), 1<<20)
	(&feed{}).add(api)
	newLookout(nil, nil).add(api)
	(&tracing{}).add(api)
	return api.OpenAPI().Components.Schemas
}

// drawer makes values as their types and tags allow them.
type drawer struct{ *rand.Rand }

// fill sets v to some value; optional values may stay away.
func (d drawer) fill(v reflect.Value, tag reflect.StructTag) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(d.Int64N(1<<33), d.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if optional := strings.Contains(f.Tag.Get("json"), ",omitempty"); !optional || d.IntN(3) > 0 {
				d.fill(v.Field(i), f.Tag)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.fill(v.Elem(), tag)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), int(atLeast(tag, "minItems"))+d.IntN(3), 8))
		for i := range v.Len() {
			d.fill(v.Index(i), tag)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range d.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			d.fill(key, "")
			d.fill(value, "")
			v.SetMapIndex(key, value)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(d.text("")))
	case reflect.String:
		v.SetString(d.text(tag))
	case reflect.Bool:
		v.SetBool(d.IntN(2) == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(d.IntN(1000)) / 8)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(d.number(tag))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(d.number(tag)))
	default:
		panic(fmt.Sprintf("no values of %v", v.Type()))
	}
}

func atLeast(tag reflect.StructTag, key string) int64 {
	n, _ := strconv.ParseInt(tag.Get(key), 10, 64)
	return n
}

// number draws one between the bounds of a tag, often one of them.
func (d drawer) number(tag reflect.StructTag) int64 {
	least, most := atLeast(tag, "minimum"), int64(1<<15)
	if tag.Get("maximum") != "" {
		most = atLeast(tag, "maximum")
	}
	return []int64{least, most, least + d.Int64N(most-least+1)}[d.IntN(3)]
}

func (d drawer) text(tag reflect.StructTag) string {
	if words := tag.Get("enum"); words != "" {
		all := strings.Split(words, ",")
		return all[d.IntN(len(all))]
	}
	if tag.Get("pattern") != "" {
		return []string{"a", "A.b-c_9", strings.Repeat("x", 64)}[d.IntN(3)]
	}
	return []string{"a", "iqn.2026-11.test:t 1", "\"<é&\x01\u2028", strings.Repeat("x", 300)}[d.IntN(4)]
}

// TestSchemas: whatever an API type may hold is JSON that the description of the API
// allows, and is read from it again.
func TestSchemas(t *testing.T) {
	registry := described(t)
	d := drawer{rand.New(rand.NewPCG(1, 2))}
	checked := 0
	for name, schema := range registry.Map() {
		kind := registry.TypeFromRef("#/components/schemas/" + name)
		if !strings.HasPrefix(kind.PkgPath(), "lunar/") {
			continue // huma's own
		}
		checked++
		for range 50 {
			value := reflect.New(kind)
			d.fill(value.Elem(), "")
			text, err := json.Marshal(value.Interface())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if problems := against(t, registry, schema, text); len(problems) > 0 {
				t.Errorf("%s: %v in\n%s", name, problems, text)
				break
			}
			again := reflect.New(kind)
			if err := json.Unmarshal(text, again.Interface()); err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, text)
			}
			if twice, err := json.Marshal(again.Interface()); err != nil || !bytes.Equal(text, twice) {
				t.Errorf("%s: found\n%s, %v after another reading, expected\n%s", name, twice, err, text)
				break
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d types are described, expected those of the package control", checked)
	}
}

// against returns what a schema does not allow in a text.
func against(t *testing.T, r huma.Registry, schema *huma.Schema, text []byte) []error {
	t.Helper()
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	var result huma.ValidateResult
	huma.Validate(r, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, read, &result)
	return result.Errors
}

// TestAnswersFitTheDescription: the description allows what the server answers.
func TestAnswersFitTheDescription(t *testing.T) {
	registry := described(t)
	for path, name := range map[string]string{"/v1/status": "Status", "/v1/sessions": "SessionList", "/v1/volumes": "VolumeList"} {
		_, c := serve(t, sample())
		_, _, body := request(t, c, "GET", "http://control"+path)
		if problems := against(t, registry, registry.Map()[name], []byte(body)); len(problems) > 0 {
			t.Errorf("%s: %v in\n%s", path, problems, body)
		}
	}
}
