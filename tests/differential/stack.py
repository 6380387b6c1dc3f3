"""tshark's fields of a frame, sorted by the layer that each belongs to."""

from dataclasses import dataclass, field

# Layers that wirelab follows inwards. Everything else ends the comparison of a frame: what tshark finds inside GTP,
# PPPoE, L2TP or TLS is not claimed to be read.
FOLLOWED = {
    "eth", "ethertype", "sll", "raw", "null", "loop", "vlan", "ieee8021ad", "llc", "mpls", "pwethheuristic", "pwethcw",
    "pwethnocw", "ip", "ipv6", "ah", "gre", "erspan", "udp", "vxlan", "geneve", "tcp", "icmp", "icmpv6", "arp",
    "infiniband", "macc", "sctp", "ipv6.hopopts", "ipv6.routing", "ipv6.dstopts", "ipv6.fraghdr",
}  # fmt: skip
LAST = {"tcp", "icmp", "icmpv6", "arp", "infiniband", "macc", "sctp"}
NETWORK = {"ip", "ipv6"}


@dataclass
class Layer:
    """One layer: its name, and which occurrence of the name it is in the frame."""

    name: str
    nth: int


@dataclass
class Stack:
    """The followed layers of a frame, outermost first, and what ended them."""

    fields: dict
    layers: list[Layer] = field(default_factory=list)
    stopped_by: str | None = None

    @classmethod
    def of(cls, fields: dict) -> "Stack":
        stack = cls(fields)
        seen: dict[str, int] = {}
        for name in fields.get("frame.protocols", [""])[0].split(":"):
            if name not in FOLLOWED:
                stack.stopped_by = name
                break
            stack.layers.append(Layer(name, seen.get(name, 0)))
            seen[name] = seen.get(name, 0) + 1
            if name in LAST:
                break
        return stack

    def value(self, name: str, layer: Layer | None):
        """The value of a field in a layer; None where it is not there."""
        values = self.fields.get(name)
        if layer is None or values is None or layer.nth >= len(values):
            return None
        return values[layer.nth] or None

    def last(self, *names: str) -> Layer | None:
        return next((layer for layer in reversed(self.layers) if layer.name in names), None)

    def networks(self) -> list[int]:
        return [at for at, layer in enumerate(self.layers) if layer.name in NETWORK]

    def tunnels(self) -> list[tuple[str, int, int]]:
        """Kind, index of the outer network layer and of the tunnel's header, outermost first."""
        found = []
        outer = None
        for at, layer in enumerate(self.layers):
            after = self.layers[at + 1].name if at + 1 < len(self.layers) else None
            if layer.name in NETWORK:
                # A fragment header that follows belongs to the same packet.
                before = self.layers[at - 1].name if at else None
                if outer is not None and before in NETWORK | {
                    "ipv6.hopopts",
                    "ipv6.routing",
                    "ipv6.dstopts",
                    "ipv6.fraghdr",
                    "ah",
                }:
                    found.append(("IPIP", outer, at))
                elif outer is not None and before == "udp":
                    # The generic protocol extension does not add its name to the stack.
                    found.append(("VXLAN-GPE", outer, at))
                outer = at
            elif outer is None:
                continue
            elif layer.name == "vxlan":
                udp = next(layer for layer in reversed(self.layers[:at]) if layer.name == "udp")
                is_gpe = self.value("udp.dstport", udp) == "4790"
                found.append(("VXLAN-GPE" if is_gpe else "VXLAN", outer, at))
            elif layer.name == "geneve":
                found.append(("GENEVE", outer, at))
            elif layer.name == "erspan":
                found.append(("ERSPAN", outer, at))
            elif layer.name == "gre" and after in {"ip", "ipv6", "eth", "mpls"}:
                found.append(("GRE", outer, at))
        return found


def number(text: str | None) -> int | None:
    if text is None:
        return None
    if text in {"True", "False"}:
        return int(text == "True")
    return int(text, 16) if text.startswith("0x") else int(text)
