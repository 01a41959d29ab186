"""Logs, traces and metrics of OpenTelemetry's own SDK, sent with its own exporters: exporter.py NUMBER [CARD]."""
import logging
import sys

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

count = int(sys.argv[1])
resource = Resource.create({"service.name": "till", "deployment.environment": "shop"})

logs = LoggerProvider(resource=resource)
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(compression=Compression.Gzip)))
traces = TracerProvider(resource=resource)
traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
meters = MeterProvider(
    resource=resource,
    metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=3_600_000)],
)

logger = logging.getLogger("sales")
logger.setLevel(logging.DEBUG)
logger.addHandler(LoggingHandler(level=logging.DEBUG, logger_provider=logs))
tracer = traces.get_tracer("sales", "1.2")
meter = meters.get_meter("sales")
sold = meter.create_counter("sold.items", unit="{item}")
took = meter.create_histogram("sale.duration", unit="ms")

with tracer.start_as_current_span("sale", attributes={"customer": "c-7"}) as span:
    for number in range(count):
        logger.info("sold %d", number, extra={"item": f"i-{number}"})
        sold.add(1, {"kind": "book"})
        took.record(number)
    with tracer.start_as_current_span("pay") as inner:
        for card in sys.argv[2:]:
            logger.warning("paid with %s", card, extra={"card": card})
            inner.set_attribute("card", card)
            sold.add(1, {"card": card})
        logger.error("the card was refused: code 42")
        inner.record_exception(ValueError("refused"))
        inner.set_status(trace.StatusCode.ERROR, "refused")
    print(format(span.get_span_context().trace_id, "032x"))

for provider in (logs, traces, meters):
    provider.force_flush()
    provider.shutdown()
