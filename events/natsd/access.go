package natsd

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/nats-io/nats-server/v2/server"
)

// A User may connect with a name and a password.
type User struct {
	Name, Password string
	// Publish and Subscribe are the subjects allowed, wildcards included;
	// nil allows every subject, an empty list none. A request that arrives
	// may always be answered once.
	Publish, Subscribe []string
}

// access decides who may connect. It is not changed after newAccess.
type access struct {
	required bool
	token    string
	users    map[string]User // name -> user

	// Clients of the same process are admitted by a password that never
	// leaves it.
	localUser, localPassword string
}

func newAccess(opts Options) *access {
	a := &access{token: opts.Token, users: map[string]User{}}
	a.required = opts.Token != "" || len(opts.Users) > 0
	if !a.required {
		return a
	}
	for _, u := range opts.Users {
		a.users[u.Name] = u
	}
	a.localUser, a.localPassword = "local-"+rand.Text(), rand.Text()
	a.users[a.localUser] = User{Name: a.localUser, Password: a.localPassword}
	return a
}

// Check is called by the server for every connection.
func (a *access) Check(c server.ClientAuthentication) bool {
	opts := c.GetOpts()
	if a.token != "" && same(opts.Token, a.token) {
		return true
	}
	user, ok := a.users[opts.Username]
	if !same(opts.Password, user.Password) || !ok {
		return false
	}
	c.RegisterUser(&server.User{Username: user.Name, Permissions: user.permissions()})
	return true
}

// same takes the same time wherever the two differ, and whatever their length.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (u User) permissions() *server.Permissions {
	if u.Publish == nil && u.Subscribe == nil {
		return nil
	}
	return &server.Permissions{
		Publish:   subjects(u.Publish),
		Subscribe: subjects(u.Subscribe),
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: server.DEFAULT_ALLOW_RESPONSE_EXPIRATION},
	}
}

func subjects(allow []string) *server.SubjectPermission {
	switch {
	case allow == nil:
		return nil
	case len(allow) == 0:
		return &server.SubjectPermission{Deny: []string{">"}}
	}
	return &server.SubjectPermission{Allow: allow}
}
