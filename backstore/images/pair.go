package images

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Pair are the images of two stores that belong together, such as data and what proves them.
// An image has its name in both, in the first last: what the second has alone is of nothing.
// beside is where the second one's clone is, by the place of the first one's. clean has a file
// of the second one, made while nobody wrote, say that nothing of it is under way.
func Pair(first, second Images, beside func(path string) string, clean func(path string) error) Images {
	return &pair{first, second, beside, clean}
}

type pair struct {
	Images
	second Images
	beside func(string) string
	clean  func(string) error
}

// List implements Images.
func (p *pair) List() ([]Image, error) {
	all, err := p.Images.List()
	if err != nil {
		return nil, err
	}
	proofs, err := p.second.List()
	return slices.DeleteFunc(all, func(i Image) bool { return !named(proofs, i.Name) }), err
}

func named(all []Image, name string) bool {
	return slices.ContainsFunc(all, func(i Image) bool { return i.Name == name })
}

// Begin implements Images.
func (p *pair) Begin(name string) (Draft, error) {
	first, err := p.Images.Begin(name)
	if err != nil {
		return nil, err
	}
	second, err := p.second.Begin(name)
	if err != nil {
		return nil, errors.Join(err, first.Discard())
	}
	return &pairDraft{first, second}, nil
}

type pairDraft struct{ first, second Draft }

// Draw implements Draft. What was altered of the first tells nothing of the second.
func (d *pairDraft) Draw(ctx context.Context, parts []Range) error {
	if err := d.first.Draw(ctx, parts); err != nil || parts != nil {
		return err
	}
	return d.second.Draw(ctx, nil)
}

// Take implements Draft.
func (d *pairDraft) Take(ctx context.Context, parts []Range, key string) error {
	if err := d.first.Take(ctx, parts, key); err != nil {
		return err
	}
	return d.second.Take(ctx, nil, "")
}

// Keep implements Draft.
func (d *pairDraft) Keep(at time.Time) error {
	if err := d.second.Keep(at); err != nil {
		return err
	}
	return d.first.Keep(at)
}

// Discard implements Draft.
func (d *pairDraft) Discard() error { return errors.Join(d.first.Discard(), d.second.Discard()) }

// Remove implements Images.
func (p *pair) Remove(name string) error {
	err := p.Images.Remove(name)
	if err != nil && !errors.Is(err, ErrNone) {
		return err
	}
	if gone := p.second.Remove(name); !errors.Is(gone, ErrNone) {
		return gone // of the second alone, when Keep has failed
	}
	return err
}

// Clone implements Images.
func (p *pair) Clone(ctx context.Context, name, path string, with ...string) (Copy, error) {
	first, err := p.Images.Clone(ctx, name, path, with...)
	if err != nil {
		return nil, err
	}
	second, err := p.second.Clone(ctx, name, p.beside(path))
	if err != nil {
		return nil, errors.Join(err, first.Undo())
	}
	return &pairCopy{first, second}, nil
}

type pairCopy struct{ first, second Copy }

// Place implements Copy.
func (c *pairCopy) Place() error {
	if err := c.second.Place(); err != nil {
		return err
	}
	return c.first.Place()
}

// Undo implements Copy.
func (c *pairCopy) Undo() error { return errors.Join(c.first.Undo(), c.second.Undo()) }

// Settle implements Copy.
func (c *pairCopy) Settle() error { return errors.Join(c.first.Settle(), c.second.Settle()) }

// Tidy implements Images. What the second has alone goes.
func (p *pair) Tidy(serves func(path string) bool) error {
	err := errors.Join(p.Images.Tidy(serves), p.second.Tidy(serves))
	data, one := p.Images.List()
	proofs, other := p.second.List()
	if err = errors.Join(err, one, other); err != nil { // an image of the first may get its name later
		return err
	}
	for _, i := range proofs {
		if !named(data, i.Name) {
			err = errors.Join(err, p.second.Remove(i.Name))
		}
	}
	return err
}

// Space implements Images: of both.
func (p *pair) Space(i Image) (Space, error) {
	s, err := p.Images.Space(i)
	if err != nil {
		return s, err
	}
	proofs, err := p.second.List()
	if err != nil {
		return s, err
	}
	for _, o := range proofs {
		if o.Name == i.Name {
			more, err := p.second.Space(o)
			return Space{s.Owned + more.Owned, s.Shared + more.Shared, s.Part || more.Part}, err
		}
	}
	return s, nil
}
