import { Dialog } from "../parts/dialog.tsx";
import { Secret } from "../parts/secret.tsx";

/** Shows the new secret of the signatures, which is not available later. */
export function AlertSecret({ secret, done }: { secret: string; done: () => void }) {
  return (
    <Dialog title="The secret of the signatures" close={done} sticky>
      <Secret secret={secret}>
        It is not shown again. The program behind the webhook uses it to check that an event is from this service.
      </Secret>
      <div class="buttons">
        <button type="button" class="primary" onClick={done}>
          I have stored it
        </button>
      </div>
    </Dialog>
  );
}
