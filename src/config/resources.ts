import { totalmem } from "node:os";

/** Limits that the operating system sets for this process. */
export interface Resources {
  /** Most files and sockets that may be open at a time (`RLIMIT_NOFILE`); Infinity: no limit. */
  readonly openFiles: number;
  /** Memory of the machine or of the container (cgroup v1 or v2), whichever is less, in bytes. */
  readonly memoryBytes: number;
}

/** Largest numbers of connections that may be open at a time. Together with the reserve, all fit. */
export interface ConnectionLimits {
  /** Of callers, to the public listener. */
  readonly public: number;
  /** To the internal listener. */
  readonly internal: number;
  /** To vendors and to search, over all hosts. */
  readonly vendors: number;
}

/**
 * Descriptors that connections of callers and vendors do not get: 21 of the database and 3 of probes of it, about
 * 30 of Node and its worker threads, 128 connections that are being refused, the journal and other files.
 */
const RESERVED_FILES = 192;

/**
 * Memory for one connection, in bytes. An open stream uses two: the caller's and a vendor's. All connections together
 * get a quarter of the memory.
 */
const CONNECTION_BYTES = 64 * 1024;

/** Below this number the limit on open files restricts ordinary use, so the start warns. */
const FEW_FILES = 4_096;

/** Least number of connections of each kind, also where the limit on open files is too low for it. */
const MIN_CONNECTIONS = 16;

/** Largest and smallest default of the body budget, in bytes. The smallest fits one body of the largest size. */
const BODY_BYTES = { most: 256 * 1024 * 1024, least: 64 * 1024 * 1024 };

/** Reads the limits. Node has raised the soft limit on open files to the hard one before. Takes 3 ms. */
export function readResources(): Resources {
  return { openFiles: openFiles(), memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Infinity) };
}

/**
 * Shares descriptors and memory out between the kinds of connection: half to calls of vendors, because one request can
 * need several; three eighths to callers; one eighth to the internal listener. So callers cannot use up what calls of
 * vendors need, and neither can use up what an operator needs.
 */
export function connectionLimits({ openFiles, memoryBytes }: Resources): ConnectionLimits {
  const total = Math.min(openFiles - RESERVED_FILES, memoryBytes / 4 / CONNECTION_BYTES);
  const share = (eighths: number): number => Math.max(MIN_CONNECTIONS, Math.floor((total * eighths) / 8));
  return { public: share(3), internal: share(1), vendors: share(4) };
}

/** Default of `CHORUS_BODY_BUDGET_BYTES`, in bytes: an eighth of the memory, from 64 to 256 MiB. */
export function bodyBudgetBytes({ memoryBytes }: Resources): number {
  return Math.min(BODY_BYTES.most, Math.max(BODY_BYTES.least, Math.floor(memoryBytes / 8)));
}

/** What an operator should change about the limits; one sentence or two each. */
export function resourceWarnings(resources: Resources): string[] {
  if (resources.openFiles >= FEW_FILES) return [];
  const { public: callers, vendors } = connectionLimits(resources);
  return [
    `This process may open only ${resources.openFiles} files, so it serves at most ${callers} connections of callers ` +
      `and ${vendors} of vendors at a time. Raise the limit to 65536: LimitNOFILE=65536 (systemd), ` +
      "--ulimit nofile=65536 (Docker) or ulimit -n 65536 (shell).",
  ];
}

function openFiles(): number {
  // The network interfaces would be looked up by name, which can take seconds.
  Object.assign(process.report, { excludeNetwork: true });
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft?: number | "unlimited" } };
  };
  const soft = userLimits?.open_files?.soft;
  // Windows has no such limit.
  return typeof soft === "number" ? soft : Number.POSITIVE_INFINITY;
}
