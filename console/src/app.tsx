import type { DescMethod } from "@bufbuild/protobuf";
import { Activity, Bell, ChartColumn, Gauge, KeyRound, Landmark, Play, ScrollText, UserCog, Users } from "lucide";
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";
import { ActivityService } from "../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../gen/chorus/admin/v1/members_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { ActivityPage } from "./activity/activity-page.tsx";
import { AlertsPage } from "./alerts/alerts-page.tsx";
import { AuditPage } from "./audit/audit-page.tsx";
import { later } from "./later.tsx";
import { LedgerPage } from "./ledger/ledger-page.tsx";
import { LimitsPage } from "./limits/limits-page.tsx";
import { NoSuchPage } from "./parts/no-such-page.tsx";
import { forgetVisit } from "./playground/visit.ts";
import { pathOf, useRoute } from "./route.ts";
import { alerts } from "./rpc.ts";
import { Account, NoWorkspace, WorkspaceName } from "./session/person.tsx";
import { can, currentSession, owners, type Session } from "./session/session.ts";
import { SessionGate } from "./session/session-gate.tsx";
import type { SignInText } from "./session/sign-in.tsx";
import type { Place } from "./shell/palette.tsx";
import { type Pages, Shell } from "./shell/shell.tsx";

/** Pages in the navigation, by the first part of their path below `/console/`. */
const PAGES = {
  "": ["Overview", ChartColumn],
  activity: ["Activity", Activity],
  playground: ["Playground", Play],
  keys: ["Keys", KeyRound],
  subjects: ["Users and tags", Users],
  limits: ["Limits and spend", Gauge],
  alerts: ["Alerts", Bell],
  ledger: ["Ledger", Landmark],
  audit: ["Audit log", ScrollText],
  members: ["Members", UserCog],
} as const satisfies Pages;

/** What a page is of no use without. The others are for all roles. */
const NEEDED: Partial<Record<keyof typeof PAGES, DescMethod>> = {
  playground: GenerationService.method.generate,
  keys: KeyService.method.listKeys,
  subjects: UsageService.method.listTopSubjects,
  alerts: AlertService.method.getAlerts,
  ledger: CreditService.method.listLedger,
  audit: ActivityService.method.listAudit,
  members: MemberService.method.listMembers,
};

/** Pages with large libraries are loaded when they are opened. The gallery is not in the navigation. */
const COMPONENTS: Record<keyof typeof PAGES | "gallery", FunctionComponent> = {
  "": later(pathOf(""), async () => (await import("./overview/overview-page.tsx")).OverviewPage),
  activity: ActivityPage,
  playground: later(
    pathOf("playground"),
    async () => (await import("./playground/playground-page.tsx")).PlaygroundPage,
  ),
  keys: later(pathOf("keys"), async () => (await import("./keys/keys-page.tsx")).KeysPage),
  subjects: later(pathOf("subjects"), async () => (await import("./subjects/subjects-page.tsx")).SubjectsPage),
  limits: LimitsPage,
  alerts: () => <AlertsPage calls={alerts} mayChange={can(AlertService.method.setAlerts)} />,
  ledger: LedgerPage,
  audit: AuditPage,
  members: later(pathOf("members"), async () => (await import("./members/members-page.tsx")).MembersPage),
  gallery: later(pathOf("gallery"), async () => (await import("./gallery/gallery-page.tsx")).GalleryPage),
};

/** The page of one request, `runs/{id}`; it belongs to Activity. */
const RunPage = later(pathOf("runs"), async () => (await import("./runs/run-page.tsx")).RunPage);

const ENDED =
  "Your session has ended: it was idle for an hour or is older than eight hours, you signed out in another tab, or " +
  "the owner token or the identity provider no longer allows it. Sign in again to continue on this page.";

const SIGN_IN: SignInText = {
  title: "Sign in · Chorus",
  heading: "Sign in to your workspace",
  label: "Owner token",
  placeholder: "ow_…",
  help: (
    <>
      The operator of this service creates it with <code>chorus owners create</code>. Or paste the sign-in link that the
      service prints when it starts. An API key (<code>ck_…</code>) does not work here.
    </>
  ),
  wrong: "This token is not valid. It may be mistyped, replaced by a newer one, or expired.",
};

/** The console: the sign-in form, or the page that the address names. */
export function App() {
  return (
    <SessionGate client={owners} find={currentSession} text={SIGN_IN} ended={ENDED}>
      {(session, leave) => (
        <SignedIn
          session={session}
          leave={() => {
            forgetVisit();
            leave();
          }}
        />
      )}
    </SessionGate>
  );
}

function SignedIn({ session, leave }: { session: Session; leave: () => void }) {
  const { page } = useRoute();
  useEffect(() => watchOtherTabs(session), [session]);
  const { workspace, workspaceId } = session;
  if (workspaceId === "") return <NoWorkspace session={session} leave={leave} />;
  const pages = pagesOf(session);
  const isRun = page.startsWith("runs/");
  const isOwn = isPage(page) && (page === "gallery" || Object.hasOwn(pages, page));
  const Page = isRun ? RunPage : isOwn ? COMPONENTS[page] : NoSuchPage;
  return (
    <Shell
      pages={pages}
      addressOf={pathOf}
      page={isRun ? "activity" : page}
      label="Workspace"
      name={<WorkspaceName session={session} />}
      account={<Account session={session} />}
      find={placesOf}
      title={workspace}
      leave={leave}
    >
      <Page key={`${workspaceId} ${page}`} />
    </Shell>
  );
}

/** Where a text leads: to the run of a request, or to keys. */
function placesOf(text: string): readonly Place[] {
  if (/^(gen|req)_[0-9a-f]+$/.test(text)) return [[`The request ${text}`, pathOf(`runs/${text}`)]];
  if (!can(KeyService.method.listKeys)) return [];
  return [[`Keys that begin with “${text}”`, pathOf("keys", { search: text })]];
}

/** The pages that the role may use. Without a provider, nobody can become a member. */
function pagesOf({ provider }: Session): Pages {
  const names = Object.keys(PAGES) as (keyof typeof PAGES)[];
  const shown = names.filter((name) => {
    const needed = NEEDED[name];
    return (!needed || can(needed)) && (name !== "members" || provider !== "");
  });
  return Object.fromEntries(shown.map((name) => [name, PAGES[name]]));
}

function isPage(name: string): name is keyof typeof COMPONENTS {
  return Object.hasOwn(COMPONENTS, name);
}

/** Reloads the page if the workspace or the role has changed, because all tabs share the session cookie. */
function watchOtherTabs(session: Session): () => void {
  const check = async () => {
    if (document.visibilityState !== "visible") return;
    const now = await currentSession().catch(() => session);
    if (now && (now.workspaceId !== session.workspaceId || now.role !== session.role)) location.reload();
  };
  document.addEventListener("visibilitychange", check);
  return () => document.removeEventListener("visibilitychange", check);
}
