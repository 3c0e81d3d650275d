#!/bin/sh
# Makes the certificates of the TLS tests again (valid for 100 years, worthless anywhere else). Run it in this directory.
set -e
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj "/CN=$1" \
    -addext "keyUsage=critical,keyCertSign" -keyout "$1.key" -out "$1.pem"
}
signed() { # name, common name, subject alternative name, days
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
  printf 'subjectAltName=%s\n' "$3" > "$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -extfile "$1.ext" -out "$1.crt"
  cat "$1.key" "$1.crt" > "$1.pem"
  rm "$1.key" "$1.csr" "$1.ext" "$1.crt"
}
authority ca
authority other-ca
signed server localhost "DNS:localhost,IP:127.0.0.1"
signed wrong-host elsewhere "DNS:elsewhere.example"
signed client alice "DNS:alice"
rm -f ca.key other-ca.key ca.srl
./stores.sh
