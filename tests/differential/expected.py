"""What wirelab's tables should hold of a frame, by tshark's fields."""

from stack import NETWORK, Layer, Stack, number

PROTOCOLS = {"tcp": "TCP", "icmp": "ICMP", "icmpv6": "ICMPv6", "arp": "ARP", "udp": "UDP", "sctp": "SCTP"}


def network(stack: Stack, at: int | None) -> dict:
    """The fields of one IPv4 or IPv6 header."""
    if at is None:
        return {}
    layer = stack.layers[at]
    get = lambda name: number(stack.value(name, layer))  # noqa: E731
    if layer.name == "ip":
        tos = get("ip.dsfield")
        # In units of eight bytes.
        offset, more = get("ip.frag_offset"), get("ip.flags.mf")
        is_fragment = bool(offset or more)
        header = {
            "src_ip": stack.value("ip.src", layer),
            "dst_ip": stack.value("ip.dst", layer),
            "dscp": None if tos is None else tos >> 2,
            "ecn": None if tos is None else tos & 3,
            "ttl": get("ip.ttl"),
            "ip_id": get("ip.id"),
            "ip_bytes": get("ip.len"),
            "ip_protocol": get("ip.proto"),
            "is_fragment": is_fragment,
            "fragment_offset": offset * 8 if is_fragment else None,
        }
        for after in stack.layers[at + 1 :]:
            if after.name != "ah":
                break
            header["ip_protocol"] = number(stack.value("ah.next_header", after))
        return header
    chain = []
    for after in stack.layers[at + 1 :]:
        if not after.name.startswith("ipv6.") and after.name != "ah":
            break
        chain.append(after)
    tclass = get("ipv6.tclass")
    plen = get("ipv6.plen")
    out = {
        "src_ip": stack.value("ipv6.src", layer),
        "dst_ip": stack.value("ipv6.dst", layer),
        "dscp": None if tclass is None else tclass >> 2,
        "ecn": None if tclass is None else tclass & 3,
        "ttl": get("ipv6.hlim"),
        "ip_id": None,
        "ip_bytes": None if plen is None else plen + 40,
        "ip_protocol": get("ipv6.nxt"),
        "is_fragment": False,
        "fragment_offset": None,
    }
    for extension in chain:
        name = {"ah": "ah.next_header"}.get(extension.name, f"{extension.name}.nxt")
        out["ip_protocol"] = number(stack.value(name, extension))
        if extension.name == "ipv6.fraghdr":
            offset = number(stack.value("ipv6.fraghdr.offset", extension))
            more = number(stack.value("ipv6.fraghdr.more", extension))
            out["ip_id"] = number(stack.value("ipv6.fraghdr.ident", extension))
            out["is_fragment"] = bool(offset or more)
            out["fragment_offset"] = offset * 8 if out["is_fragment"] else None
    return out


def outermost(stack: Stack) -> dict:
    """Link layer, VLAN and MPLS of the outermost frame."""
    fields = stack.fields
    first = stack.layers[0].name if stack.layers else fields.get("frame.protocols", [""])[0].split(":")[0]
    before = []
    for layer in stack.layers:
        if layer.name in NETWORK or (layer.name == "eth" and layer.nth > 0):
            break
        before.append(layer)
    tags = [layer for layer in before if layer.name in {"vlan", "ieee8021ad"}]
    ids, priorities = [], []
    for tag in tags:
        ids.append(number(stack.value(f"{tag.name}.id", tag)))
        priorities.append(number(stack.value(f"{tag.name}.priority", tag)))
    is_ethernet = first == "eth"
    mpls = next((layer for layer in before if layer.name == "mpls"), None)
    return {
        "captured_bytes": number(fields["frame.cap_len"][0]),
        "original_bytes": number(fields["frame.len"][0]),
        "src_mac": fields.get("eth.src", [None])[0] if is_ethernet else fields.get("sll.src.eth", [None])[0],
        "dst_mac": fields.get("eth.dst", [None])[0] if is_ethernet else None,
        "vlan_id": ids[0] if ids else None,
        "vlan_pcp": priorities[0] if priorities else None,
        "inner_vlan_id": ids[1] if len(ids) > 1 else None,
        "mpls_label": number(stack.value("mpls.label", Layer("mpls", 0))) if mpls else None,
    }


def tunnels(stack: Stack) -> list[dict]:
    rows = []
    for kind, outer, at in stack.tunnels():
        layer = stack.layers[at]
        header = network(stack, outer)
        following = next(
            (
                i
                for i in range(at if stack.layers[at].name in NETWORK else at + 1, len(stack.layers))
                if stack.layers[i].name in NETWORK
            ),
            None,
        )
        inner = network(stack, following)
        udp = next((layer for layer in reversed(stack.layers[outer:at]) if layer.name == "udp"), None)
        vni = None
        if kind.startswith("VXLAN"):
            first = (stack.fields.get("vxlan.vni") or [None])[0]
            vni = number(stack.value("vxlan.vni", layer) if layer.name == "vxlan" else first)
        elif kind == "GENEVE":
            vni = number(stack.value("geneve.vni", layer))
        elif kind == "ERSPAN":
            vni = number(stack.value("erspan.spanid", layer))
        elif kind == "GRE":
            flags = number(stack.value("gre.flags_and_version", layer)) or 0
            key = number((stack.fields.get("gre.key") or [None])[0])
            is_ethernet = number(stack.value("gre.proto", layer)) == 0x6558
            if flags & 0x2000 and key is not None:
                kind, vni = ("NVGRE", key >> 8) if is_ethernet else ("GRE", key)
        rows.append({
            "kind": kind,
            "vni": vni,
            "outer_src_ip": header.get("src_ip"),
            "outer_dst_ip": header.get("dst_ip"),
            "outer_src_port": number(stack.value("udp.srcport", udp)),
            "outer_dst_port": number(stack.value("udp.dstport", udp)),
            "outer_dscp": header.get("dscp"),
            "outer_ecn": header.get("ecn"),
            "outer_ttl": header.get("ttl"),
            "inner_src_ip": inner.get("src_ip"),
            "inner_dst_ip": inner.get("dst_ip"),
        })  # fmt: skip
    return rows


def packet(stack: Stack) -> dict:
    row = outermost(stack)
    networks = stack.networks()
    last = stack.layers[-1].name if stack.layers else None
    # A frame in a tunnel that is no IP has no addresses; those of the tunnel's own packet are `outer_*`.
    inner_frame = next((at for at in range(len(stack.layers) - 1, 0, -1) if stack.layers[at].name in {"eth", "arp"}), 0)
    if networks and inner_frame > networks[-1]:
        networks = []
    row |= network(stack, networks[-1] if networks else None)
    fields = stack.fields
    roce_v1 = last == "infiniband" and "udp" not in {layer.name for layer in stack.layers}
    if roce_v1:
        row["src_ip"] = fields.get("infiniband.grh.sgid", [None])[0]
        row["dst_ip"] = fields.get("infiniband.grh.dgid", [None])[0]
    if last == "arp":
        row["src_ip"] = fields.get("arp.src.proto_ipv4", [None])[0]
        row["dst_ip"] = fields.get("arp.dst.proto_ipv4", [None])[0]
    after = stack.layers[networks[-1] :] if networks else []
    transport = next((layer for layer in after if layer.name in {"tcp", "udp", "sctp"}), None)
    name = transport.name if transport else ""
    row["src_port"] = number(stack.value(f"{name}.srcport", transport))
    row["dst_port"] = number(stack.value(f"{name}.dstport", transport))
    row["protocol"] = PROTOCOLS.get(last)
    if last == "infiniband":
        row["protocol"] = "RoCEv1" if roce_v1 else "RoCEv2"
    if last == "macc":
        row["protocol"] = {1: "PAUSE", 0x101: "PFC"}.get(number(fields.get("macc.opcode", ["0"])[0]), "MAC control")
    if last == "tcp":
        row["payload_bytes"] = number(stack.value("tcp.len", transport))
    elif last == "udp":
        length = number(stack.value("udp.length", transport))
        # A length of 0 is left to the network card.
        row["payload_bytes"] = None if not length else length - 8
    layers = tunnels(stack)
    row["tunnel"] = layers[-1]["kind"] if layers else None
    row["vni"] = next((layer["vni"] for layer in reversed(layers) if layer["vni"] is not None), None)
    for name in ("src_ip", "dst_ip", "src_port", "dst_port", "dscp", "ecn", "ttl"):
        row[f"outer_{name}"] = layers[0][f"outer_{name}"] if layers else None
    return row


def tcp(stack: Stack) -> dict | None:
    layer = stack.last("tcp")
    if layer is None:
        return None
    get = lambda name: number(stack.value(f"tcp.{name}", layer))  # noqa: E731
    # One TCP header's blocks; a quoted or tunnelled header behind it is never reached.
    edges = [[number(value) for value in stack.fields.get(f"tcp.options.sack_{end}", [])] for end in ("le", "re")]
    return {
        "src_port": get("srcport"),
        "dst_port": get("dstport"),
        "seq_raw": get("seq_raw"),
        "ack_raw": get("ack_raw"),
        "flags": get("flags"),
        "window": get("window_size_value"),
        "payload_bytes": get("len"),
        "mss": get("options.mss_val"),
        "wscale": get("options.wscale.shift"),
        "tsval": get("options.timestamp.tsval"),
        "tsecr": get("options.timestamp.tsecr"),
        "sack": list(zip(*edges, strict=False)) or None,
    }


def icmp(stack: Stack) -> dict | None:
    layer = stack.last("icmp", "icmpv6")
    if layer is None:
        return None
    is_v4 = layer.name == "icmp"
    get = lambda name: number((stack.fields.get(f"{layer.name}.{name}") or [None])[0])  # noqa: E731
    kind = get("type")
    is_echo = kind in ({0, 8} if is_v4 else {128, 129})
    row = {
        "type": kind,
        "code": get("code"),
        # tshark prints the identifier in both byte orders; the first is the network's.
        "identifier": get("ident" if is_v4 else "echo.identifier") if is_echo else None,
        "sequence": get("seq" if is_v4 else "echo.sequence_number") if is_echo else None,
        "mtu": get("mtu"),
    }
    # The quoted packet is the next network layer of the whole stack.
    names = stack.fields.get("frame.protocols", [""])[0].split(":")
    after = names[names.index(layer.name) + 1 :] if layer.name in names else []
    quoted = next((name for name in after if name in NETWORK), None) if after[:1] and after[0] in NETWORK else None
    if quoted:
        nth = sum(1 for inner in stack.layers if inner.name == quoted)
        inner = Layer(quoted, nth)
        row["quoted_src_ip"] = stack.value(f"{quoted}.src", inner)
        row["quoted_dst_ip"] = stack.value(f"{quoted}.dst", inner)
        port = next((name for name in after[1:2] if name in {"tcp", "udp"}), None)
        if port:
            nth = sum(1 for layer in stack.layers if layer.name == port)
            row["quoted_src_port"] = number(stack.value(f"{port}.srcport", Layer(port, nth)))
            row["quoted_dst_port"] = number(stack.value(f"{port}.dstport", Layer(port, nth)))
    return row


def arp(stack: Stack) -> dict | None:
    if not stack.last("arp"):
        return None
    first = lambda name: (stack.fields.get(f"arp.{name}") or [None])[0]  # noqa: E731
    return {
        "operation": number(first("opcode")),
        "sender_mac": first("src.hw_mac"),
        "sender_ip": first("src.proto_ipv4"),
        "target_mac": first("dst.hw_mac"),
        "target_ip": first("dst.proto_ipv4"),
    }


def roce(stack: Stack) -> dict | None:
    if not stack.last("infiniband"):
        return None
    get = lambda name: number((stack.fields.get(f"infiniband.{name}") or [None])[0])  # noqa: E731
    return {
        "opcode": get("bth.opcode"),
        "is_solicited": get("bth.se"),
        "pad": get("bth.padcnt"),
        "pkey": get("bth.p_key"),
        "dest_qp": get("bth.destqp"),
        "is_ack_req": get("bth.a"),
        "psn": get("bth.psn"),
        "va": get("reth.va"),
        "rkey": get("reth.r_key"),
        "dma_bytes": get("reth.dmalen"),
        "syndrome": get("aeth.syndrome"),
        "msn": get("aeth.msn"),
        "qkey": get("deth.q_key"),
        "src_qp": get("deth.srcqp"),
        "swap_or_add": get("atomiceth.swapdt"),
        "compare": get("atomiceth.cmpdt"),
        "original_value": get("atomicacketh.origremdt"),
    }


def pause(stack: Stack) -> list[dict]:
    if not stack.last("macc"):
        return []
    get = lambda name: number((stack.fields.get(f"macc.{name}") or [None])[0])  # noqa: E731
    opcode = get("opcode")
    if opcode == 1:
        return [{"kind": "PAUSE", "class": None, "quanta": get("pause_time")}]
    if opcode != 0x101:
        return []
    enabled = get("cbfc.enbv") or 0
    times = [(priority, get(f"cbfc.pause_time.c{priority}")) for priority in range(8)]
    return [{"kind": "PFC", "class": priority, "quanta": time} for priority, time in times if enabled >> priority & 1]
