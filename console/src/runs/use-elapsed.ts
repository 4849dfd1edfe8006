import { useEffect, useState } from "preact/hooks";

/** Interval at which a drawing moves, in milliseconds. */
const FRAME_MS = 100;

/**
 * Time since a request began, in milliseconds, which goes on between two answers of the service, unless the person
 * wants little motion.
 * @param isRunning whether it goes on
 * @param atMs the time that the last answer says
 * @param answer the last answer
 */
export function useElapsed(isRunning: boolean, atMs: number, answer: unknown): number {
  const [state, setState] = useState({ answer, receivedAt: performance.now(), now: performance.now() });
  useEffect(() => {
    const receivedAt = performance.now();
    setState({ answer, receivedAt, now: receivedAt });
    if (!isRunning || matchMedia("(prefers-reduced-motion: reduce)").matches) return undefined;
    const timer = setInterval(() => setState({ answer, receivedAt, now: performance.now() }), FRAME_MS);
    return () => clearInterval(timer);
  }, [isRunning, answer]);
  return isRunning && state.answer === answer ? Math.round(atMs + state.now - state.receivedAt) : atMs;
}
