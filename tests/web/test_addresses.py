"""Which addresses are fetched from, and which forms of the others are seen through."""

from __future__ import annotations

import pytest

from workers.tools.context import ToolRefused
from workers.web import addresses, target
from workers.web.target import Reach, Target

PUBLIC = ("93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:93.184.216.34", "64:ff9b::5db8:d822")
CLOSED = {
    "127.0.0.1": "a loopback address",
    "127.8.8.8": "a loopback address",
    "::1": "a loopback address",
    "::ffff:127.0.0.1": "a loopback address",
    "::127.0.0.1": "a loopback address",
    "64:ff9b::7f00:1": "a loopback address",
    "2002:7f00:1::": "a loopback address",
    "10.1.2.3": "a private address",
    "172.16.0.1": "a private address",
    "192.168.1.1": "a private address",
    "::ffff:10.0.0.1": "a private address",
    "64:ff9b::a00:1": "a private address",
    "2002:a00:1::": "a private address",
    "fd12:3456::1": "a private address",
    "fec0::1": "a private address",
    "0.0.0.0": "the unspecified address",  # noqa: S104 - an address that is refused
    "::": "the unspecified address",
    "0.1.2.3": "a private address",
    "169.254.1.1": "a link-local address",
    "fe80::1": "a link-local address",
    "fe80::1%eth0": "a link-local address",
    "169.254.169.254": "the address of a cloud's metadata",
    "::ffff:169.254.169.254": "a link-local address",
    "64:ff9b::a9fe:a9fe": "a link-local address",
    "100.100.100.200": "the address of a cloud's metadata",
    "fd00:ec2::254": "the address of a cloud's metadata",
    "100.64.0.1": "an address that is not public",
    "224.0.0.1": "a multicast address",
    "ff02::1": "a multicast address",
    "240.0.0.1": "a private address",
    "255.255.255.255": "a private address",
    "198.18.0.1": "a private address",
    "2001:db8::1": "a private address",
    "no address": "no address",
}


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet_is_fetched_from(address: str) -> None:
    assert addresses.why_not(address) is None


@pytest.mark.parametrize("address", sorted(CLOSED))
def test_nothing_else_is(address: str) -> None:
    assert addresses.why_not(address) == CLOSED[address]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("gopher://example.org/", "only http and https"),
        ("ftp://example.org/x", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("example.org/x", "only http and https"),
        ("http://", "names no host"),
        ("http:///x", "names no host"),
        ("http://name:word@example.org/", "name or password"),
        ("http://example.org@169.254.169.254/", "name or password"),
        ("http://example.org:99999/", "no URL"),
        ("http://[::1/", "no URL"),
        ("http://exa mple.org/", "blank"),
        ("http://example.org/\r\nHost: other", "control character"),
        ("http://example.org\\@10.0.0.1/", "backslash"),
        ("http://-bad-/", "names no host"),
        ("https://example.org/" + "a" * 5000, "characters long"),
    ],
)
def test_what_is_no_plain_address_of_a_page_is_refused_by_a_sentence(url: str, why: str) -> None:
    with pytest.raises(ToolRefused, match=why):
        target.parse(url)


def test_an_address_is_read_as_it_will_be_asked_for() -> None:
    assert target.parse("HTTPS://Exämple.org.:443/a b"[:-2] + "%20b?q=ü") == Target(
        "https", "xn--exmple-cua.org", 443, "/a%20b?q=%C3%BC"
    )
    assert target.parse("http://[2606:4700::1]:8080/").origin == "2606:4700::1:8080"


def test_a_redirect_is_judged_like_any_address_and_never_leaves_tls() -> None:
    at = target.parse("https://example.org/a/b")
    assert target.follow(at, "../c").url == "https://example.org/c"
    assert target.follow(at, "//other.org/").url == "https://other.org/"
    for location in ("http://example.org/", "file:///etc/passwd", "https://a:b@example.org/"):
        with pytest.raises(ToolRefused):
            target.follow(at, location)


def test_where_hosts_are_named_only_they_are_fetched_from() -> None:
    reach = target.reach("127.0.0.1:8000", "example.org, *.docs.example.org")
    may = {
        "http://example.org/": True,
        "http://a.example.org/": False,
        "http://docs.example.org/": False,
        "http://a.docs.example.org/": True,
        "http://badexample.org/": False,
        "http://127.0.0.1:8000/": True,
        "http://127.0.0.1:8001/": False,
    }
    assert {url: reach.allows(target.parse(url)) for url in may} == may
    assert Reach().allows(target.parse("http://anything.example/"))
