/** The logo. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M4 7c8 0 9 9 15 9M4 16h24M4 25c8 0 9-9 15-9" />
    </svg>
  );
}
