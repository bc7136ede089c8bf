// exporters.mjs CONFIG - what an instrumented agent does, by the real exporters.
//
// CONFIG is JSON: {url, encoding: "proto"|"http", compression: "gzip"|"none", headers, again}.  Prints
// one line of JSON: the ids of the spans, how each export ended, what the SDK logged.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { SpanKind, SpanStatusCode, context, diag, DiagLogLevel, trace } = require('@opentelemetry/api');
const { SeverityNumber } = require('@opentelemetry/api-logs');
const { Resource } = require('@opentelemetry/resources');
const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } =
  require('@opentelemetry/sdk-trace-base');
const { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } =
  require('@opentelemetry/sdk-logs');

const config = JSON.parse(process.argv[2]);
const kind = config.encoding;
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${kind}`);
const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${kind}`);

const said = [];
const note = (...words) => said.push(words.map(String).join(' '));
diag.setLogger({ error: note, warn: note, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN);

const resource = new Resource({ 'service.name': 'weather-agent', 'service.version': '1.2.3' });
const spans = new InMemorySpanExporter();
const logs = new InMemoryLogRecordExporter();
const provider = new BasicTracerProvider({ resource, spanProcessors: [new SimpleSpanProcessor(spans)] });
const tracer = provider.getTracer('weather', '0.1');
const loggers = new LoggerProvider({ resource });
loggers.addLogRecordProcessor(new SimpleLogRecordProcessor(logs));
const logger = loggers.getLogger('weather');

// One agent asks a model, calls a tool, asks again, and hands over to another agent.
function within(span, work) {
  const at = trace.setSpan(context.active(), span);
  work((name, options = {}) => tracer.startSpan(name, options, at), at);
  span.end();
}

const root = tracer.startSpan('invoke_agent planner', {
  kind: SpanKind.INTERNAL,
  attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'planner' },
});
within(root, (child, at) => {
  const chat = child('chat gpt', {
    kind: SpanKind.CLIENT,
    attributes: {
      'gen_ai.operation.name': 'chat', 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-x',
      'gen_ai.usage.input_tokens': 1200, 'gen_ai.usage.output_tokens': 34,
      'gen_ai.request.temperature': 0.2, 'gen_ai.request.stop_sequences': ['a', 'ü\u{1f600}'],
      'custom.unknown.flag': true,
    },
  });
  chat.addEvent('gen_ai.content.prompt', { 'gen_ai.prompt': 'what is the weather?' });
  logger.emit({
    context: trace.setSpan(at, chat), severityNumber: SeverityNumber.INFO, severityText: 'INFO',
    body: 'what is the weather?', attributes: { 'event.name': 'gen_ai.user.message' },
  });
  chat.end();
  const tool = child('execute_tool weather', {
    attributes: {
      'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'weather',
      'gen_ai.tool.call.id': 'call_1', 'gen_ai.tool.call.arguments': '{"city":"Köln"}',
    },
    links: [{ context: chat.spanContext(), attributes: { why: 'asked for' } }],
  });
  tool.setStatus({ code: SpanStatusCode.ERROR, message: 'no such city' });
  tool.recordException(new Error('no such city'));
  tool.end();
  const other = child('invoke_agent helper', {
    attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'helper' },
  });
  within(other, (deeper) => deeper('chat gpt', {
    attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'helper' },
  }).end());
  logger.emit({ severityNumber: SeverityNumber.WARN, body: { nested: { list: [1, 2.5, 'x', null] } } });
});

const settings = { url: `${config.url}/v1/traces`, compression: config.compression, headers: config.headers };
const tracesTo = new OTLPTraceExporter(settings);
const logsTo = new OTLPLogExporter({ ...settings, url: `${config.url}/v1/logs` });
const send = (exporter, records) =>
  new Promise((done) => exporter.export(records, ({ code, error }) =>
    done(code === 0 ? 'ok' : `${error?.code ?? ''} ${error?.message ?? 'failed'}`)));

const finished = spans.getFinishedSpans();
const results = [];
results.push(await send(tracesTo, finished.slice(0, 2)));
results.push(await send(tracesTo, finished));                 // with two that came before
results.push(await send(logsTo, logs.getFinishedLogRecords()));
results.push(await send(logsTo, logs.getFinishedLogRecords()));
if (config.again) {                                           // the same span, told otherwise
  const told = Object.create(finished[0]);
  Object.defineProperty(told, 'name', { value: 'told otherwise' });
  results.push(await send(tracesTo, [told]));
}
await tracesTo.shutdown();
await logsTo.shutdown();
console.log(JSON.stringify({
  trace: root.spanContext().traceId,
  spans: finished.map((span) => span.spanContext().spanId),
  names: finished.map((span) => span.name),
  results,
  said,
}));
