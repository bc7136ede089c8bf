// carried.ts - the data that a file carries with it, where there is no server to ask.

import {ApiError, type Answers, type Query} from './api';

export interface CarriedData {
  format: 'cortex-page-1';
}

/** What `cortex lattice render --html` put into the page; null for a page from a server. */
export function carriedData(): CarriedData | null {
  const text = document.getElementById('cortex-data')?.textContent;
  return text ? (JSON.parse(text) as CarriedData | null) : null;
}

export class Carried implements Answers {
  readonly live = false;

  constructor(private readonly data: CarriedData) {}

  get(path: string, query: Query): Promise<unknown> {
    return Promise.reject(new ApiError({
      type: 'about:blank', title: 'Not in this file', status: 404,
      detail: `This file does not hold ${path} ${Object.keys(query).length}${this.data.format}`,
    }));
  }
}
