// types.ts - answers of the endpoints.

export type {
  ActorRoots as Actor,
  Checkpoints,
  HomeRootNow,
  Memories,
  Roots,
  Snapshots,
} from '../../base/api-types';
