"""A certificate authority of our own: ECDSA P-256, made at first start, kept in files that only we can read.

`Authority.open(directory)` continues with the files it finds there; `Authority.create()` keeps everything in memory.
Certificates are issued for the server (names and addresses) and for clients (user as CN, groups as O).
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_DAYS = 3650
LEAF_DAYS = 365
_BACK_DATED = datetime.timedelta(hours=1)  # for clients whose clock is behind
DEFAULT_NAMES = (
    "localhost",
    "127.0.0.1",
    "::1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class Pair(NamedTuple):
    """A certificate and its private key, as PEM."""

    cert: bytes
    key: bytes


class Authority:
    """A CA that can issue."""

    def __init__(self, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._cert = cert
        self._key = key

    @classmethod
    def create(cls, name: str = "muster-ca") -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _dated(x509.CertificateBuilder(), CA_DAYS)
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(sign_certs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def open(cls, directory: Path, file: str = "ca", name: str = "muster-ca") -> Authority:
        """The authority of a data directory, created there the first time."""
        cert_file, key_file = directory / f"{file}.crt", directory / f"{file}.key"
        if cert_file.exists() and key_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{key_file}: not an ECDSA key")
            cert = x509.load_pem_x509_certificate(cert_file.read_bytes())
            _check_dates(cert_file, cert)
            return cls(cert, key)
        authority = cls.create(name)
        write_private(key_file, _pem_key(authority._key))
        write_private(cert_file, authority.pem)
        return authority

    @property
    def pem(self) -> bytes:
        return self._cert.public_bytes(serialization.Encoding.PEM)

    def for_server(self, names: Iterable[str] = DEFAULT_NAMES) -> Pair:
        alternatives = [_alternative(name) for name in dict.fromkeys(names)]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def for_client(self, user: str, groups: Iterable[str] = ()) -> Pair:
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._issue(x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def sign_client_request(self, request: bytes, seconds: float, now: datetime.datetime) -> bytes:
        """A client certificate for the key and subject of a PEM request, valid from now on; as PEM."""
        asked = x509.load_pem_x509_csr(request)
        key = asked.public_key()
        builder = (
            x509.CertificateBuilder()
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACK_DATED)
            .not_valid_after(min(now + datetime.timedelta(seconds=seconds), self._cert.not_valid_after_utc))
            .subject_name(asked.subject)
            .issuer_name(self._cert.subject)
            .public_key(key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign_certs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _issue(self, subject: x509.Name, usage: x509.ObjectIdentifier, names: list[x509.GeneralName]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _dated(x509.CertificateBuilder(), LEAF_DAYS)
            .subject_name(subject)
            .issuer_name(self._cert.subject)
            .public_key(key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign_certs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        cert = builder.sign(self._key, hashes.SHA256())
        return Pair(cert.public_bytes(serialization.Encoding.PEM), _pem_key(key))


def expires_soon(cert: bytes, days: int = 30) -> bool:
    """Whether a certificate has less than so many days left."""
    left = x509.load_pem_x509_certificate(cert).not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    return left < datetime.timedelta(days=days)


def _check_dates(file: Path, cert: x509.Certificate) -> None:
    """Nobody could connect outside the dates of the CA, and nobody would be told why."""
    now = datetime.datetime.now(datetime.UTC)
    since, until = cert.not_valid_before_utc, cert.not_valid_after_utc
    if not since <= now <= until:
        dates = f"valid from {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC"
        raise ValueError(f"{file}: {dates}, and the clock of this machine says {now:%Y-%m-%d %H:%M}: set the clock")


def private_directory(path: Path) -> Path:
    """A directory; if it is missing it is made so that only we can enter it, otherwise it keeps its mode."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace a file in one step; nobody else can read it at any moment."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)


def _dated(builder: x509.CertificateBuilder, days: int) -> x509.CertificateBuilder:
    start = datetime.datetime.now(datetime.UTC) - _BACK_DATED
    return (
        builder.serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=days))
    )


def _usage(*, sign_certs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certs,
        crl_sign=sign_certs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
