import type { Client } from "@connectrpc/connect";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AlertService, Alerts, SetAlertsResponse } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { AlertSecret } from "./alert-dialogs.tsx";
import { AlertsForm } from "./alerts-form.tsx";
import { DeliveryTable } from "./delivery-table.tsx";
import { isUnderWay, type SentTest, TestResult, useTested } from "./test-result.tsx";
import { alertsOf, isMail } from "./thresholds.ts";

const EVERY_MS = 5000;
/** Interval while a test is sent. */
const TEST_MS = 1000;

const LEAD =
  "Events for your program, or mails, when credit runs low, a spend limit or a cap is nearly used, or requests fail.";
const ALL_LEAD =
  "Events for your program, or mails, when a workspace with requests in the last 15 minutes crosses a threshold.";

type Calls = Client<typeof AlertService>;

interface Props {
  /** Calls in the session of the owner or of the operator. */
  calls: Calls;
  /** Address of the page of a workspace, for the alerts of the operators, which watch all workspaces. */
  addressOfWorkspace?: (name: string) => string;
  /** False shows what is set, without a way to change it. */
  mayChange?: boolean;
}

/** Sets alerts and lists their deliveries. */
export function AlertsPage({ calls, addressOfWorkspace, mayChange = true }: Props) {
  const [test, setTest] = useState<SentTest>();
  const [every, setEvery] = useState(EVERY_MS);
  // A test appears on the first page.
  const pager = usePager(test?.id ?? "");
  const rules = useLoad((signal) => calls.getAlerts({}, { signal }), "rules");
  const page = useLoad(
    (signal) => calls.listAlertDeliveries({ pageSize: 25, pageToken: pager.token }, { signal }),
    pager.token,
    every,
  );
  const tested = useTested(test, page.data?.deliveries ?? []);
  useEffect(() => setEvery(isUnderWay(test, tested) ? TEST_MS : EVERY_MS), [test, tested]);
  return (
    <>
      <PageHead title="Alerts" lead={addressOfWorkspace ? ALL_LEAD : LEAD} />
      <Card title="Address and thresholds">
        <Pending of={rules} what="alerts" skeleton={<Skeleton tall="14rem" />}>
          {({ alerts }) => (
            <fieldset class="whole" disabled={!mayChange}>
              <Rules
                calls={calls}
                loaded={alerts}
                result={<TestResult of={test} delivery={tested} />}
                changed={(next) => {
                  setTest(next);
                  page.reload();
                }}
              />
            </fieldset>
          )}
        </Pending>
      </Card>
      <Card
        title="Deliveries"
        text="The last 200. An event is sent up to eight times, until it is accepted."
        actions={<Refresh run={page.reload} class="quiet round" />}
        flush
      >
        <Pending of={page} what="deliveries" skeleton={<Skeleton tall="16rem" />}>
          {({ deliveries, nextPageToken }) => (
            <>
              <DeliveryTable deliveries={deliveries} addressOfWorkspace={addressOfWorkspace} />
              <PagerButtons pager={pager} next={nextPageToken} />
            </>
          )}
        </Pending>
      </Card>
    </>
  );
}

interface RulesProps {
  calls: Calls;
  loaded: Alerts | undefined;
  /** What became of the last test. */
  result: ComponentChildren;
  /** Called with a test that is sent, and with none when the alerts have changed. */
  changed: (test: SentTest | undefined) => void;
}

/** The form with its dialogs. */
function Rules({ calls, loaded, result, changed }: RulesProps) {
  const [set, setSet] = useState(loaded);
  const [secret, setSecret] = useState("");
  const [asked, setAsked] = useState<"renew" | "remove">();
  const close = () => setAsked(undefined);
  const show = (response: SetAlertsResponse, sentence: string) => {
    setSet(response.alerts);
    setSecret(response.secret);
    close();
    changed(undefined);
    toast(sentence);
  };
  return (
    <>
      <AlertsForm
        set={set}
        result={result}
        save={async (draft) => show(await calls.setAlerts({ alerts: alertsOf(draft) }), "Saved the alerts.")}
        test={async () => {
          const { deliveryId: id } = await calls.testAlerts({});
          changed({ id, isMail: isMail(set?.webhookUrl ?? "") });
        }}
        renew={() => setAsked("renew")}
        remove={() => setAsked("remove")}
      />
      {asked === "renew" && set && (
        <ConfirmDialog
          title="Make a new secret?"
          action="Make a new secret"
          run={async () => show(await calls.setAlerts({ alerts: set, newSecret: true }), "Made a new secret.")}
          close={close}
        >
          <p>Events are signed with it at once. The program behind the webhook refuses them until it knows it.</p>
        </ConfirmDialog>
      )}
      {asked === "remove" && (
        <ConfirmDialog
          title="Remove the alerts?"
          action="Remove the alerts"
          run={async () => {
            await calls.clearAlerts({});
            setSet(undefined);
            close();
            changed(undefined);
            toast("Removed the alerts.");
          }}
          close={close}
        >
          <p>Address, thresholds and secret are removed, and events that wait are not sent.</p>
        </ConfirmDialog>
      )}
      {secret && <AlertSecret secret={secret} done={() => setSecret("")} />}
    </>
  );
}
