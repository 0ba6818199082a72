"""Networks by HTTP: the token is seen by its receiver alone, and no receiver can hold an upload for ever."""

import base64
import os
import shutil
import socket
import ssl
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tengen import redact
from tengen.config.settings.data import UploadSettings
from tengen.daemon.senders import HttpSender, SendError
from tengen.daemon.uploads import Uploads
from tests.daemon.test_uploads import Said, http, network
from tests.helpers.patience import LONG, eventually
from tests.helpers.upload_receiver import Receiver, receiving

VARIABLE = "TENGEN_TEST_TOKEN"
TOKEN = "s3cr+t/with=signs&42"


@pytest.fixture
def file(tmp_path: Path) -> tuple[str, Path]:
    """A network: its name and its folder."""
    name = network(tmp_path, 1)
    return name, tmp_path / "models" / name


def refused(sender: HttpSender, file: tuple[str, Path]) -> str:
    with pytest.raises(SendError) as caught:
        sender.send(*file)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("act", ["echo", "garble", "http://other.example/?back={token}"])
def test_a_receiver_that_repeats_the_token_is_not_quoted(
    act: str, file: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    with receiving(act.replace("{token}", TOKEN), token=TOKEN) as receiver:
        said = Said()
        settings = http(receiver.address, token_variable=VARIABLE, timeout=LONG, first_pause=600.0)
        with Uploads(tmp_path, settings, said) as uploads:
            uploads.put(file[0])
            eventually(lambda: "failed" in uploads.state(file[0]), said.lines)
            eventually(lambda: said.lines)
            said.lines.append(uploads.state(file[0]))
    everything = "\n".join(said.lines) + "".join(
        path.read_text() for path in tmp_path.rglob("*.json") if path.is_file()
    )
    assert "127.0.0.1" in everything
    assert "repeats the token" in everything
    assert not any(TOKEN[at : at + 6] in everything for at in range(len(TOKEN) - 5))


def test_a_password_in_basic_authorization_is_kept_secret_too(
    file: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    password = "open-sesame"
    value = "Basic " + base64.b64encode(f"me:{password}".encode()).decode()
    monkeypatch.setenv(VARIABLE, value)
    with receiving("echo", f"http://me:{password}@elsewhere.example/") as receiver:
        asked = Recorded(receiver)
        sender = HttpSender(http(receiver.address, token_variable=VARIABLE, timeout=LONG))
        first, second = refused(sender, file), refused(sender, file)
    assert asked.authorization == [value, value]
    assert password not in first + second
    assert value[6:] not in first + second


def test_an_address_for_lc0_gets_the_file_for_lc0(file: tuple[str, Path]) -> None:
    name, folder = file
    with receiving() as receiver:
        (folder / "lc0.pb.gz").write_bytes(b"for Lc0")
        HttpSender(http(receiver.address + "/{name}.pb.gz", timeout=LONG)).send(name, folder)
        HttpSender(http(receiver.address, timeout=LONG)).send(name, folder)
    assert receiver.asked == [f"/{name}.pb.gz", f"/{name}.safetensors"]
    assert receiver.stored[f"/{name}.pb.gz"] == b"for Lc0"
    assert receiver.stored[f"/{name}.safetensors"] == (folder / "model.safetensors").read_bytes()


class Recorded:
    """The Authorization of every request."""

    def __init__(self, receiver: Receiver) -> None:
        self.authorization: list[str | None] = []
        self._put = receiver.put
        receiver.put = self  # type: ignore[method-assign]

    def __call__(self, request) -> None:  # type: ignore[no-untyped-def]
        self.authorization.append(request.headers["Authorization"])
        self._put(request)


def test_a_token_in_the_address(file: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    with receiving() as receiver:
        asked = Recorded(receiver)
        HttpSender(http(receiver.address + "/{name}?key={token}", token_variable=VARIABLE, timeout=LONG)).send(*file)
    assert list(receiver.stored) == [f"/{file[0]}?key=s3cr%2Bt%2Fwith%3Dsigns%2642"]
    assert asked.authorization == [None]


def test_redirects_are_not_followed(file: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    with receiving() as other, receiving(other.address + "/nets") as receiver:
        said = refused(HttpSender(http(receiver.address, token_variable=VARIABLE, timeout=LONG)), file)
    assert other.asked == []
    assert f"answered 307 Temporary Redirect: redirects are not followed; this one is to {other.address}/nets" in said


def test_a_network_that_is_gone_is_named_and_not_the_receiver(tmp_path: Path) -> None:
    said = refused(HttpSender(http("http://receiver.invalid")), ("n", tmp_path))
    assert said == f"{tmp_path / 'model.safetensors'}: No such file or directory"
    os.mkfifo(tmp_path / "model.safetensors")
    assert "model.safetensors: is a FIFO" in refused(HttpSender(http("http://receiver.invalid")), ("n", tmp_path))


def test_an_answer_that_never_ends_is_cut_off_at_the_deadline(file: tuple[str, Path]) -> None:
    with receiving("trickle") as receiver:
        receiver.tick = lambda: time.sleep(0.01)
        sender = HttpSender(http(receiver.address, deadline=0.5))
        assert refused(sender, file) == "127.0.0.1 took longer than the deadline, 0.5 s"
        HttpSender(http(receiver.address)).send(*file)
    assert len(receiver.stored) == 1


def test_a_body_that_nobody_takes_is_cut_off_at_the_deadline(tmp_path: Path) -> None:
    name = network(tmp_path, 1, 20_000_000)  # more than the buffers of a connection
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sender = HttpSender(http(f"http://127.0.0.1:{listening.getsockname()[1]}", deadline=0.5))
        said = refused(sender, (name, tmp_path / "models" / name))
    assert said == "127.0.0.1 took longer than the deadline, 0.5 s"


def test_a_handshake_that_never_ends_is_cut_off_at_the_deadline(file: tuple[str, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sender = HttpSender(http(f"https://127.0.0.1:{listening.getsockname()[1]}", deadline=0.5))
        assert refused(sender, file) == "127.0.0.1 took longer than the deadline, 0.5 s"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_encrypted_and_with_the_same_deadline(
    file: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    monkeypatch.setenv(VARIABLE, TOKEN)
    with receiving("trickle", tls=context, token=TOKEN) as receiver:
        receiver.tick = lambda: time.sleep(0.01)
        settings = http(receiver.address, token_variable=VARIABLE)
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        assert "CERTIFICATE_VERIFY_FAILED" in refused(HttpSender(settings), file)
        assert receiver.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        sender = HttpSender(replace(settings, deadline=0.5))
        assert sender.warning == ""
        assert refused(sender, file) == "localhost took longer than the deadline, 0.5 s"
        HttpSender(settings).send(*file)
    assert len(receiver.stored) == 1


@pytest.mark.parametrize(
    ("address", "variable", "warned"),
    [
        ("http://nets.example.org/up", VARIABLE, True),
        ("http://127.0.0.1.example.org", VARIABLE, True),
        ("http://10.0.0.7", VARIABLE, True),
        ("HTTP://10.0.0.7", VARIABLE, True),
        ("https://nets.example.org/up", VARIABLE, False),
        ("http://nets.example.org/up", None, False),
        ("http://127.0.0.1:8080", VARIABLE, False),
        ("http://[::1]:8080", VARIABLE, False),
        ("http://localhost", VARIABLE, False),
    ],
)
def test_a_token_over_plain_http_is_warned_of_once(
    address: str, variable: str | None, warned: bool, tmp_path: Path
) -> None:
    said = Said()
    with Uploads(tmp_path, UploadSettings(kind="http", target=address, token_variable=variable), said):
        pass
    assert len(said.lines) == warned
    if warned:
        assert "over plain http" in said.lines[0]
        assert VARIABLE in said.lines[0]


SECRETS = [
    ("http", "https://me:hunter2@example.org/nets", "token_variable"),
    ("http", "https://hunter2@example.org/nets", "token_variable"),
    ("http", "https://me:p@hunter2@example.org", "token_variable"),
    ("http", "https://me:hun/ter2@example.org", "address"),
    ("http", "https://example.org/{name}?a=b&api_key=hunter2", "{token}"),
    ("http", "https://example.org/{name}?X-Amz-Signature=hunter2", "{token}"),
    ("command", "curl -T - ftp://me:hunter2@example.org/", "environment"),
    ("command", "curl -H 'Authorization: Bearer hunter2' https://example.org", "environment"),
    ("none", "https://me:hunter2@example.org/nets", "null"),
]


@pytest.mark.parametrize(("kind", "target", "instead"), SECRETS)
def test_a_target_with_a_secret_is_refused_without_repeating_it(kind: str, target: str, instead: str) -> None:
    (problem,) = UploadSettings(kind=kind, target=target).check_together()
    assert problem[0] == "target"
    assert instead in problem[1]
    assert "hunter2" not in problem[1]
    assert "ter2" not in problem[1]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("http", "https://example.org/{name}?run=r&key={token}"),
        ("http", "https://example.org/me@home/nets"),
        ("command", "rsync -a -e ssh me@example.org:/nets"),
        ("command", "scp -i key ssh://git@example.org/nets"),
        ("command", "sh -c 'curl -H \"Authorization: Bearer $TOKEN\" https://$ME:$WORD@example.org?token=$TOKEN'"),
        ("copy", "/nets"),
    ],
)
def test_targets_without_secrets_are_good(kind: str, target: str) -> None:
    variable = VARIABLE if kind == "http" else None
    assert list(UploadSettings(kind=kind, target=target, token_variable=variable).check_together()) == []


def test_a_token_in_the_place_of_its_variable_is_not_repeated() -> None:
    (problem,) = UploadSettings("http", "https://example.org", "hunter-2").check_together()
    assert problem == ("token_variable", "expected the name of an environment variable, never the token itself")
    (problem,) = UploadSettings("http", "https://example.org/{token}").check_together()
    assert problem[0] == "token_variable"


def test_pieces_and_encodings_of_a_secret_are_noticed() -> None:
    for said in (TOKEN, TOKEN[3:12], "a s3cr+t/w\nith=sig", "s3cr%2Bt%2Fwith%3Dsigns%2642", "s3cr+t/with=signs&amp;42"):
        assert redact.repeats(f"you said {said}!", TOKEN), said
    assert not redact.repeats("401 who are you", TOKEN)
    assert redact.repeats("your word is abc", "abc")
