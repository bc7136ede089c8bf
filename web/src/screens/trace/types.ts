// types.ts - answers of /api/v1/covenant (docs/formats/trace.md §11).

export type {
  TraceAnswer,
  TraceAround as Around,
  TraceCheck as Checked,
  TraceRow as Row,
  TraceVerdict as Verdict,
} from '../../base/api-types';
