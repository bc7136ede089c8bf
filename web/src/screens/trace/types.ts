// types.ts - what /api/v1/covenant answers (docs/formats/trace.md §11).

export type {
  TraceAnswer,
  TraceAround as Around,
  TraceCheck as Checked,
  TraceRow as Row,
  TraceVerdict as Verdict,
} from '../../base/api-types';
