#!/bin/sh
# Makes the Java stores of the TLS tests again, of the certificates beside it. Needs a JDK. Run it in this directory.
set -e
rm -f ./*.jks ./*.p12
store() { keytool "$@" -noprompt -storepass store-secret; }
openssl pkcs12 -export -in client.pem -name client -passout pass:store-secret -out openssl-key.p12
copy="-importkeystore -srckeystore openssl-key.p12 -srcstorepass store-secret"
store $copy -destkeystore key.p12 -deststoretype PKCS12
store -J-Dkeystore.pkcs12.legacy $copy -destkeystore legacy-key.p12 -deststoretype PKCS12
store $copy -destkeystore key.jks -deststoretype JKS
store -keypasswd -keystore key.jks -alias client -keypass store-secret -new key-secret
for trust in "trust.jks JKS" "trust.p12 PKCS12"; do
  set -- $trust
  store -importcert -file other-ca.pem -alias other -keystore "$1" -storetype "$2"
  store -importcert -file ca.pem -alias ca -keystore "$1" -storetype "$2"
done
store -J-Dkeystore.pkcs12.legacy -importcert -file ca.pem -alias ca -keystore legacy-trust.p12 -storetype PKCS12
