package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"reflect"
	"text/template"
	"time"
)

// certificate has the fields that templates read.
type certificate struct {
	Cert string
	Key  string
}

// certificates replaces the functions that make keys and certificates. What they make is well-formed, so that templates that read it
// again still work, but always of the one kind of key that is a function of a seed (Ed25519).
func (m *invention) certificates() template.FuncMap {
	own := func(name string) ed25519.PrivateKey { m.used[name] = true; return m.key() }
	given := func(name, text string) (ed25519.PrivateKey, error) { m.used[name] = true; return keyOf(text) }
	return template.FuncMap{
		"genPrivateKey": func(kind string) (string, error) {
			switch kind {
			case "", "rsa", "dsa", "ecdsa", "ed25519":
			default:
				return "Unknown type " + kind, nil
			}
			m.used["genPrivateKey"] = true
			return keyPEM(m.key())
		},
		"genCA": func(name string, days int) (certificate, error) {
			return m.sign(name, nil, nil, days, true, own("genCA"), nil)
		},
		"genCAWithKey": func(name string, days int, keyText string) (certificate, error) {
			key, err := given("genCAWithKey", keyText)
			if err != nil {
				return certificate{}, err
			}
			return m.sign(name, nil, nil, days, true, key, nil)
		},
		"genSelfSignedCert": func(name string, ips, names []any, days int) (certificate, error) {
			return m.sign(name, ips, names, days, false, own("genSelfSignedCert"), nil)
		},
		"genSelfSignedCertWithKey": func(name string, ips, names []any, days int, keyText string) (certificate, error) {
			key, err := given("genSelfSignedCertWithKey", keyText)
			if err != nil {
				return certificate{}, err
			}
			return m.sign(name, ips, names, days, false, key, nil)
		},
		"genSignedCert": func(name string, ips, names []any, days int, ca any) (certificate, error) {
			return m.sign(name, ips, names, days, false, own("genSignedCert"), ca)
		},
		"genSignedCertWithKey": func(name string, ips, names []any, days int, ca any, keyText string) (certificate, error) {
			key, err := given("genSignedCertWithKey", keyText)
			if err != nil {
				return certificate{}, err
			}
			return m.sign(name, ips, names, days, false, key, ca)
		},
	}
}

func (m *invention) key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(m.bytes(ed25519.SeedSize))
}

// sign makes a certificate, signed by `ca` or by itself. A CA of the values, whose key is of another kind, is stood in for by a key of
// ours: the result is made up anyway.
func (m *invention) sign(name string, ips, names []any, days int, isCA bool, key ed25519.PrivateKey, ca any) (certificate, error) {
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(m.bytes(16)),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             m.clock,
		NotAfter:              m.clock.Add(time.Duration(days) * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  isCA,
	}
	for _, ip := range ips {
		text, _ := ip.(string)
		parsed := net.ParseIP(text)
		if parsed == nil {
			return certificate{}, fmt.Errorf("error parsing ip: %v", ip)
		}
		template.IPAddresses = append(template.IPAddresses, parsed)
	}
	for _, dns := range names {
		text, isText := dns.(string)
		if !isText {
			return certificate{}, fmt.Errorf("error processing alternate dns name: %v", dns)
		}
		template.DNSNames = append(template.DNSNames, text)
	}
	issuer, signer := template, key
	if ca != nil {
		var err error
		if issuer, signer, err = readIssuer(ca); err != nil {
			return certificate{}, err
		}
	}
	der, err := x509.CreateCertificate(nil, template, issuer, key.Public(), signer)
	if err != nil {
		return certificate{}, err
	}
	text, err := keyPEM(key)
	return certificate{Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), Key: text}, err
}

// readIssuer reads a CA as genCA and buildCustomCert give it: a struct with the fields Cert and Key.
func readIssuer(ca any) (*x509.Certificate, ed25519.PrivateKey, error) {
	value := reflect.ValueOf(ca)
	if value.Kind() != reflect.Struct || !value.FieldByName("Cert").IsValid() || !value.FieldByName("Key").IsValid() {
		return nil, nil, errors.New("the CA is not a certificate")
	}
	block, _ := pem.Decode([]byte(value.FieldByName("Cert").String()))
	if block == nil {
		return nil, nil, errors.New("unable to decode certificate")
	}
	issuer, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("error parsing certificate: %w", err)
	}
	key, err := keyOf(value.FieldByName("Key").String())
	if err != nil {
		return nil, nil, err
	}
	if public, same := issuer.PublicKey.(ed25519.PublicKey); !same || !public.Equal(key.Public()) {
		issuer.PublicKey, issuer.PublicKeyAlgorithm = key.Public(), x509.Ed25519
	}
	return issuer, key, nil
}

// keyOf reads a key in PEM; one of another kind is stood in for by a key made from its text.
func keyOf(text string) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("no PEM data in input")
	}
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, same := parsed.(ed25519.PrivateKey); same {
			return key, nil
		}
	}
	seed := make([]byte, ed25519.SeedSize)
	copy(seed, block.Bytes[max(0, len(block.Bytes)-ed25519.SeedSize):])
	return ed25519.NewKeyFromSeed(seed), nil
}

func keyPEM(key ed25519.PrivateKey) (string, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}
