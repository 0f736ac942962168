"""The certificate authority: what it issues, and how its files are kept."""

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from muster.certificates import DEFAULT_NAMES, Authority, expires_soon, private_directory, write_private
from muster.plane.credentials import Credentials


def test_a_server_certificate_carries_every_name_it_is_called_by() -> None:
    cert = x509.load_pem_x509_certificate(Authority.create().for_server((*DEFAULT_NAMES, "192.0.2.7")).cert)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kubernetes.default.svc"} <= set(names.get_values_for_type(x509.DNSName))
    assert {"127.0.0.1", "::1", "192.0.2.7"} <= {str(ip) for ip in names.get_values_for_type(x509.IPAddress)}


def test_a_client_certificate_cannot_serve_and_a_server_certificate_cannot_ask() -> None:
    authority = Authority.create()
    for pair, usage in (
        (authority.for_client("a"), ExtendedKeyUsageOID.CLIENT_AUTH),
        (authority.for_server(), ExtendedKeyUsageOID.SERVER_AUTH),
    ):
        cert = x509.load_pem_x509_certificate(pair.cert)
        assert list(cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [usage]


def test_certificates_end_and_the_authority_lasts_longer() -> None:
    authority = Authority.create()
    leaf = x509.load_pem_x509_certificate(authority.for_client("a").cert)
    root = x509.load_pem_x509_certificate(authority.pem)
    assert leaf.not_valid_after_utc < root.not_valid_after_utc
    assert leaf.not_valid_after_utc - leaf.not_valid_before_utc == datetime.timedelta(days=365)
    assert not expires_soon(authority.for_client("a").cert)
    assert expires_soon(authority.for_client("a").cert, days=400)


def test_the_authority_is_kept_and_private(tmp_path: Path) -> None:
    first = Authority.open(tmp_path).pem
    assert Authority.open(tmp_path).pem == first
    assert (tmp_path / "ca.key").stat().st_mode & 0o777 == 0o600


def test_the_administrators_certificate_is_kept_so_that_copies_go_on_working(tmp_path: Path) -> None:
    first = Credentials(tmp_path).for_admin()
    assert Credentials(tmp_path).for_admin() == first


def test_a_directory_of_ours_is_private_and_one_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    assert private_directory(tmp_path / "new" / "d").stat().st_mode & 0o777 == 0o700
    directory = tmp_path / "d"
    directory.mkdir()
    directory.chmod(0o755)
    assert private_directory(directory).stat().st_mode & 0o777 == 0o755


def test_an_authority_that_is_not_valid_yet_is_refused_with_its_dates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Authority.open(tmp_path)
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)

    class Yesterday(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return yesterday

    monkeypatch.setattr("muster.certificates.datetime.datetime", Yesterday)
    with pytest.raises(ValueError, match=r"ca\.crt: valid from .* the clock of this machine says"):
        Authority.open(tmp_path)


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old and longer")
    file.chmod(0o644)
    write_private(file, b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
