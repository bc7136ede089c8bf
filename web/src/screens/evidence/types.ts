// types.ts - what the endpoints answer.

export type {
  ActorRoots as Actor,
  Checkpoints,
  Memories,
  Roots,
  Snapshots,
} from '../../base/api-types';
