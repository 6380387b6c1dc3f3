"""Differences from tshark that are meant, each with its reason. `README.md` says why wirelab is right in each case."""


def reason(name: str, ours, theirs, context: dict) -> str | None:
    """Why a cell may differ; None where it may not."""
    for text, applies in RULES:
        if applies(name, ours, theirs, context):
            return text
    return None


def stops_with(context: dict, *starts: str) -> bool:
    return (context["packet"].get("decode_stop") or "").startswith(starts)


def protocols(context: dict) -> list[str]:
    return context["fields"].get("frame.protocols", [""])[0].split(":")


def is_fragment(context: dict) -> bool:
    """An IP layer that tshark reached is a piece of a datagram, or was when it arrived."""
    fields = context["fields"]
    offsets = fields.get("ip.frag_offset", []) + fields.get("ipv6.fraghdr.offset", [])
    more = fields.get("ip.flags.mf", []) + fields.get("ipv6.fraghdr.more", [])
    return any(offset != "0" for offset in offsets) or any(flag in {"1", "True"} for flag in more)


def is_earlier_fragment(name, ours, theirs, context):
    return name in {"packets.src_port", "packets.dst_port"} and theirs is None and context["packet"].get("is_fragment")


def is_icmp_fragment(name, ours, theirs, context):
    """tshark shows the message at the frame that completes it, wirelab at the first fragment."""
    table = name.split(".")[0]
    is_icmp = context["packet"].get("ip_protocol") in {1, 58}
    return is_icmp and is_fragment(context) and (table == "icmp" or name == "packets.protocol")


def is_huge_length(name, ours, theirs, context):
    return name in {"packets.original_bytes", "packets.ip_bytes", "tcp.payload_bytes", "packets.payload_bytes"} and (
        context["packet"].get("original_bytes", 0) > 0x7FFFFFFF
    )


def is_length_past_packet(name, ours, theirs, context):
    """The UDP length says more than the IP packet or the frame can hold."""
    if name != "packets.payload_bytes" or ours is None or theirs is None or ours >= theirs:
        return False
    packet = context["packet"]
    is_v6 = ":" in (packet["src_ip"] or "")
    room = min(packet["ip_bytes"], packet["original_bytes"] - (14 if packet["src_mac"] else 0))
    return packet["protocol"] == "UDP" and theirs + 8 + (40 if is_v6 else 20) > room


def is_cut_header(name, ours, theirs, context):
    """tshark prints the fields before the cut; wirelab reads a header only where all of it is there."""
    if name in {"packets.protocol", "packets.ip_protocol"} and stops_with(context, "TCP ", "IPv6 extension header"):
        return True
    if (
        stops_with(context, "Ethernet ", "IPv6 at", "IPv4 at")
        and "the capture holds" in context["packet"]["decode_stop"]
    ):
        return True
    return ours is None and stops_with(context, "TCP ", "IPv4 ", "IPv6 ", "ARP ", "UDP ", "VXLAN ", "ICMP ")


def is_bad_data_offset(name, ours, theirs, context):
    return stops_with(context, "TCP at") and "data offset" in context["packet"]["decode_stop"]


def is_total_length_zero(name, ours, theirs, context):
    """IPv4 total length or IPv6 payload length 0 in a frame that is longer than 64 KiB: BIG TCP."""
    return context["packet"].get("original_bytes", 0) > 65_575 and context["file"].name.startswith("bigtcp")


def is_by_source_port(name, ours, theirs, context):
    """tshark tries the source port too; wirelab reads tunnels by the destination port alone."""
    fields = context["fields"]
    first = fields.get("udp.srcport", ["0"])[0] in {"6081", "4790", "4789", "8472", "4754", "4791"}
    return first and context["packet"].get("outer_src_ip") is None and context["packet"].get("protocol") == "UDP"


def is_pseudowire(name, ours, theirs, context):
    """tshark guesses "no control word" where the control word of zeros is followed by a good Ethernet frame."""
    return "pwethnocw" in protocols(context)


def is_fabric_path(name, ours, theirs, context):
    macs = context["fields"].get("eth.dst", []) + [context["packet"].get("dst_mac") or ""]
    return protocols(context)[1:2] == ["cfp"] or macs[-1] in {"01:00:0c:00:00:00", "03:00:0c:00:00:00"}


def is_mac_in_gre(name, ours, theirs, context):
    """MikroTik's EoIP: GRE version 1 that is not PPTP's."""
    return "0x6400" in " ".join(context["fields"].get("gre.proto", []))


def is_dynamically_connected(name, ours, theirs, context):
    """Mellanox's DC transport uses the opcodes of Reliable Datagram with extension headers that are not published."""
    return name.startswith("roce.") and 0x40 <= (context["row"].get("opcode") or 0) < 0x60


def is_mpls_over_udp(name, ours, theirs, context):
    return "udp:mpls" in ":".join(protocols(context))


def is_redirect_in_gre(name, ours, theirs, context):
    return "0x883e" in context["fields"].get("gre.proto", [])


def is_wrong_version(name, ours, theirs, context):
    """The version nibble contradicts the layer before: wirelab stops there, tshark goes by the nibble or reads on."""
    if stops_with(context, "IPv4 at", "IPv6 at") and "version is" in context["packet"]["decode_stop"]:
        return True
    return protocols(context)[-3:-1] == ["ip", "ipv6"] and "ip.src" not in context["fields"]


def is_no_jumbo_option(name, ours, theirs, context):
    """IPv6 payload length 0: wirelab takes the length of the frame, tshark wants a jumbo payload option."""
    return context["fields"].get("ipv6.plen", [None])[0] == "0" and context["packet"].get("outer_src_ip") is None


def is_too_deep(name, ours, theirs, context):
    return (context["packet"].get("decode_stop") or "").endswith("nested too deep")


def is_overlapping(name, ours, theirs, context):
    """Fragments that overlap are never put together, as in Linux and by RFC 5722; tshark does put them together."""
    names = {"teardrop.pcap", "fragmented-1.pcap", "fragmented-4.pcap", "30_gtpu_outer_ipv4_fragmentation.pcap"}
    return context["file"].name in names and is_fragment(context)


RULES = [
    ("ports carried to the other fragments of a datagram", is_earlier_fragment),
    ("a fragmented ICMP message is read from its first fragment", is_icmp_fragment),
    ("tshark caps lengths at 2^31 - 1", is_huge_length),
    ("a UDP length past the end of the packet counts only as far as the packet goes", is_length_past_packet),
    ("a header that is not all there is not read", is_cut_header),
    ("a TCP data offset below 5 or past the segment", is_bad_data_offset),
    ("BIG TCP (length 0 in frames over 64 KiB), which tshark 4.0 does not follow", is_total_length_zero),
    ("tunnels are told by the destination port, not by the source port", is_by_source_port),
    ("a pseudowire with a control word that tshark takes for none", is_pseudowire),
    ("Cisco FabricPath and ISL encapsulations are not read", is_fabric_path),
    ("EoIP (GRE version 1, protocol 0x6400) is not read", is_mac_in_gre),
    ("Mellanox DC transport under Reliable Datagram opcodes", is_dynamically_connected),
    ("WCCP redirection in GRE (protocol 0x883e) is not read", is_redirect_in_gre),
    ("an IP version that contradicts the layer before ends decoding", is_wrong_version),
    ("IPv6 payload length 0 without a jumbo payload option", is_no_jumbo_option),
    ("more extension headers than are followed (16)", is_too_deep),
    ("overlapping fragments are not put together", is_overlapping),
    ("MPLS over UDP (port 6635) is not read", is_mpls_over_udp),
]
