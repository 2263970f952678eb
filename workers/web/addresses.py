"""Which addresses a fetch may connect to: those of the public internet. Pure.

Source: the registries of special-purpose addresses that `ipaddress` follows (RFC 6890 and its successors), and the
forms in which IPv6 carries an IPv4 address (RFC 4291, 3056, 4380, 6052): what is carried is judged too.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ip_network("::/96")
_METADATA = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"})
"""Where clouds tell a machine its keys. All of them are refused by their kind too; they are named for the reader."""


def why_not(address: str) -> str | None:
    """Why this numeric address is not connected to ("a loopback address"), or None where it may be."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return "no address"
    if address in _METADATA:
        return "the address of a cloud's metadata"
    carried = _carried(ip) if isinstance(ip, IPv6Address) else None
    return _kind(ip) if carried is None else _kind(carried) or _kind(ip, tunnel=True)


def _kind(ip: IPv4Address | IPv6Address, *, tunnel: bool = False) -> str | None:
    if ip.is_loopback:
        return "a loopback address"
    if ip.is_link_local:
        return "a link-local address"
    if ip.is_multicast:
        return "a multicast address"
    if ip.is_unspecified:
        return "the unspecified address"
    if isinstance(ip, IPv6Address) and ip.is_site_local:
        return "a private address"
    if ip.is_private and not tunnel:
        return "a private address"
    return None if tunnel or ip.is_global else "an address that is not public"


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to this one end at."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if ip.teredo is not None:
        return ip.teredo[1]
    if any(_within(ip, network) for network in (*_NAT64, _COMPATIBLE)) and int(ip) > 1:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def _within(ip: IPv6Address, network: object) -> bool:
    return isinstance(network, IPv6Network) and ip in network
