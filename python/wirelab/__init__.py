"""Packet captures of AI-cluster networks as Arrow tables.

    import wirelab as wl

    cap = wl.open("tcp.pcapng")
    cap                               # what it is; in a notebook, a card
    cap.tcp_flows.to_pandas()         # also to_polars(), to_arrow()
    cap.sql("SELECT src_ip, count(*) FROM packets GROUP BY 1")

    for batch in wl.scan("huge.pcap.zst", table="tcp", columns=["time", "seq"], port=5201):
        ...                           # bounded memory

    wl.convert(Path("captures").glob("*.pcap"), "dataset", ["tcp_flows"])    # Parquet, a partition per capture

Every table, scan and batch speaks the Arrow PyCapsule interface.
"""

from . import _start
from ._capture import Capture, Finding, Summary, open, tables
from ._convert import Conversion, ConvertedCapture, convert
from ._core import __version__
from ._errors import ConversionError, LimitError, NotACaptureError, QueryLimitError, SqlError, UsageError, WirelabError
from ._grade import Lab, Report, grade
from ._match import Matches, match
from ._scan import RecordBatch, Scan, scan
from ._sql import QueryResult, sql
from ._table import Table

_start.loaded()

__all__ = [
    "Capture",
    "Conversion",
    "ConversionError",
    "ConvertedCapture",
    "Finding",
    "Lab",
    "LimitError",
    "Matches",
    "NotACaptureError",
    "QueryLimitError",
    "QueryResult",
    "RecordBatch",
    "Report",
    "Scan",
    "SqlError",
    "Summary",
    "Table",
    "UsageError",
    "WirelabError",
    "__version__",
    "convert",
    "grade",
    "match",
    "open",
    "scan",
    "sql",
    "tables",
]
