"""Signed service-account tokens: ES256 JSON web tokens with audience, expiry and what they are bound to.

Only the signature, the times and the issuer are checked here; whether the account and the pod still exist is
`muster.server.auth.service_accounts`' question. The key set is published so that others can verify tokens too.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from muster.certificates import write_private

ISSUER = "https://kubernetes.default.svc.cluster.local"
_SIZE = 32  # bytes of one coordinate on P-256


class BadToken(Exception):
    """A token that proves nothing; the text says why and never repeats the token."""


class TokenSigner:
    """Signs and verifies the tokens of one cluster."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, issuer: str = ISSUER) -> None:
        self._key = key
        self._public = key.public_key()
        self.issuer = issuer
        numbers = self._public.public_numbers()
        self._x, self._y = (_encode(number.to_bytes(_SIZE, "big")) for number in (numbers.x, numbers.y))
        self._id = _thumbprint(self._x, self._y)

    @classmethod
    def create(cls, issuer: str = ISSUER) -> TokenSigner:
        return cls(ec.generate_private_key(ec.SECP256R1()), issuer)

    @classmethod
    def open(cls, directory: Path, issuer: str = ISSUER) -> TokenSigner:
        """The signer of a data directory; its key is created there the first time."""
        file = directory / "sa.key"
        if not file.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            form = serialization.PrivateFormat.PKCS8
            write_private(file, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        key = serialization.load_pem_private_key(file.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{file}: not an ECDSA key")
        return cls(key, issuer)

    def sign(self, claims: dict[str, Any]) -> str:
        header = {"alg": "ES256", "kid": self._id}
        signed = f"{_json(header)}.{_json({'iss': self.issuer, **claims})}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(_SIZE, 'big') + s.to_bytes(_SIZE, 'big'))}"

    def verify(self, token: str, now: float) -> dict[str, Any]:
        """The claims of a token that we signed and that is valid now."""
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken("not a signed token")
        header, claims = _object(parts[0]), _object(parts[1])
        if header.get("alg") != "ES256" or header.get("kid") != self._id:
            raise BadToken("signed with an unknown key")
        self._check_signature(f"{parts[0]}.{parts[1]}".encode(), _decode(parts[2]))
        if claims.get("iss") != self.issuer:
            raise BadToken("from another issuer")
        expires, begins = claims.get("exp"), claims.get("nbf", 0)
        if not isinstance(expires, int) or now >= expires:
            raise BadToken("expired")
        if not isinstance(begins, int) or now < begins - 60:
            raise BadToken("not valid yet")
        return claims

    def _check_signature(self, signed: bytes, signature: bytes) -> None:
        if len(signature) != 2 * _SIZE:
            raise BadToken("bad signature")
        r, s = int.from_bytes(signature[:_SIZE], "big"), int.from_bytes(signature[_SIZE:], "big")
        try:
            self._public.verify(encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise BadToken("bad signature") from None

    def key_set(self) -> dict[str, Any]:
        """The public key, as /openid/v1/jwks publishes it."""
        key = {"use": "sig", "kty": "EC", "kid": self._id, "crv": "P-256", "alg": "ES256", "x": self._x, "y": self._y}
        return {"keys": [key]}

    def discovery(self) -> dict[str, Any]:
        """What /.well-known/openid-configuration says."""
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }


def _thumbprint(x: str, y: str) -> str:
    """RFC 7638: the hash of the key's required members in order."""
    text = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    return _encode(hashlib.sha256(text.encode()).digest())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise BadToken("not a signed token") from None


def _json(value: dict[str, Any]) -> str:
    return _encode(msgspec.json.encode(value))


def _object(part: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(_decode(part), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadToken("not a signed token") from None
