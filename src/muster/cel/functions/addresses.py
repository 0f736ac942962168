"""IP addresses and CIDR ranges."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address, ip_interface, ip_network

from muster.cel.functions.function import Codec, Function
from muster.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Opaque

IP = Opaque("net.IP")
CIDR = Opaque("net.CIDR")

Address = IPv4Address | IPv6Address
Range = IPv4Interface | IPv6Interface  # the address as written, and the network that it names


def parse_ip(text: str) -> Address:
    try:
        address = ip_address(text)
    except ValueError as error:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string: {error}") from None
    if isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id):
        raise ValueError(
            f"IP Address {text!r} parse error during conversion from string: no zones, no mapped addresses"
        )
    return address


def is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except ValueError:
        return False
    return True


def is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def is_global_unicast(address: Address) -> bool:
    """As Go has it: private addresses are included, what is special is not."""
    special = address.is_multicast or address.is_unspecified or address.is_loopback or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def is_link_local_multicast(address: Address) -> bool:
    return address in ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def parse_cidr(text: str) -> Range:
    try:
        address, slash, prefix = text.partition("/")
        if not slash or not prefix.isdigit() or (len(prefix) > 1 and prefix.startswith("0")):
            raise ValueError("no prefix length")
        parse_ip(address)
        return ip_interface(text)
    except ValueError as error:
        raise ValueError(f"network address parse error during conversion from string: {error}") from None


def is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except ValueError:
        return False
    return True


def contains_ip(within: Range, address: Address) -> bool:
    return address in within.network


def contains_cidr(within: Range, other: Range) -> bool:
    network, inner = within.network, other.network
    return network.version == inner.version and inner.prefixlen >= network.prefixlen and inner[0] in network


def masked(within: Range) -> Range:
    return ip_interface(str(within.network))


_PRINTABLE = (BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT)
IP_CODEC = Codec(IP, b"i", str, ip_address)
CIDR_CODEC = Codec(CIDR, b"c", str, ip_interface)

FUNCTIONS = (
    Function("ip", (STRING,), IP, parse_ip, member=False, walk=0.1),
    Function("isIP", (STRING,), BOOL, is_ip, member=False, walk=0.1),
    Function("ip.isCanonical", (STRING,), BOOL, is_canonical, member=False, walk=0.1),
    Function("family", (IP,), INT, lambda address: address.version),
    Function("isUnspecified", (IP,), BOOL, lambda address: address.is_unspecified),
    Function("isLoopback", (IP,), BOOL, lambda address: address.is_loopback),
    Function("isLinkLocalMulticast", (IP,), BOOL, is_link_local_multicast),
    Function("isLinkLocalUnicast", (IP,), BOOL, lambda address: address.is_link_local),
    Function("isGlobalUnicast", (IP,), BOOL, is_global_unicast),
    Function("cidr", (STRING,), CIDR, parse_cidr, member=False, walk=0.1),
    Function("isCIDR", (STRING,), BOOL, is_cidr, member=False, walk=0.1),
    Function("containsIP", (CIDR, IP), BOOL, contains_ip),
    Function("containsIP", (CIDR, STRING), BOOL, lambda within, text: contains_ip(within, parse_ip(text))),
    Function("containsCIDR", (CIDR, CIDR), BOOL, contains_cidr),
    Function("containsCIDR", (CIDR, STRING), BOOL, lambda within, text: contains_cidr(within, parse_cidr(text))),
    Function("ip", (CIDR,), IP, lambda within: within.ip),
    Function("masked", (CIDR,), CIDR, masked),
    Function("prefixLength", (CIDR,), INT, lambda within: within.network.prefixlen),
    # string() as the language has it, and for addresses; `muster.cel.rewriting` puts @text where the check saw those.
    *(Function("string", (each,), STRING, None, member=False) for each in (*_PRINTABLE, IP, CIDR)),
    Function("@text", (IP,), STRING, str, member=False, declared=False),
    Function("@text", (CIDR,), STRING, str, member=False, declared=False),
)
