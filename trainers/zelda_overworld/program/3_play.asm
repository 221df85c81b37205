; --- play --------------------------------------------------------------------------------------------------
play:
  LDA hurt
  BEQ unhurt
  DEC hurt
unhurt:
  LDA sword
  BEQ walk
  DEC sword
  JMP others
walk:
  LDA pad
  AND #$80
  BEQ no_sword
  LDA before
  AND #$80
  BNE no_sword
  JSR draw_sword
  JMP others
no_sword:
  LDX #3
  LDA pad
way:
  LSR
  BCS go
  DEX
  BPL way
  BMI others
go:
  STX facing
  JSR move
  LDA mode
  CMP #2
  BNE played
others:
  JSR take
  JSR enemies
  JMP sprites
played:
  RTS

draw_sword:
  LDA #10
  STA sword
  LDX facing
  LDA px
  CLC
  ADC reach_x,x
  STA swordx
  LDA py
  CLC
  ADC reach_y,x
  STA swordy
  RTS

; Two pixels towards facing, in X, unless there is rock; beyond the edge lies the next room.
move:
  LDA px
  CLC
  ADC walk_x,x
  STA newx
  LDA py
  CLC
  ADC walk_y,x
  STA newy
  LDA newx
  CMP #2
  BCC leave_west
  CMP #241
  BCS leave_east
  LDA newy
  CMP #58
  BCC leave_north
  CMP #225
  BCS leave_south
  LDX #3
corner:
  JSR tile_at
  CMP #$80
  BCS blocked
  CMP #$0E
  BEQ stairs
  DEX
  BPL corner
  LDA newx
  STA px
  LDA newy
  STA py
blocked:
  RTS
stairs:
  LDA #1
  STA incave
  LDA #120
  STA px
  LDA #200
  STA py
  JMP enter
leave_west:
  DEC location
  LDA #238
  STA px
  JMP enter
leave_east:
  INC location
  LDA #4
  STA px
  JMP enter
leave_north:
  LDA location
  SEC
  SBC #$10
  STA location
  LDA #222
  STA py
  JMP enter
leave_south:
  LDA incave
  BNE leave_cave
  LDA location
  CLC
  ADC #$10
  STA location
  LDA #58
  STA py
  JMP enter
leave_cave:
  LDA #0
  STA incave
  LDA #176
  STA px
  LDA #112
  STA py
  JMP enter

; The tile below corner X of whoever is at newx, newy; keeps X. The corners lie close to the middle, so that nobody
; gets stuck between two rocks.
tile_at:
  LDA newy
  CLC
  ADC corner_y,x
  SEC
  SBC #64
  AND #$F8
  STA ptr
  LDA #0
  ASL ptr
  ROL
  ASL ptr
  ROL
  CLC
  ADC #>tiles
  STA ptr+1
  LDA newx
  CLC
  ADC corner_x,x
  LSR
  LSR
  LSR
  TAY
  LDA (ptr),y
  RTS

take:
  LDX itemtype
  BEQ not_taken
  LDA itemx
  SEC
  SBC px
  JSR absolute
  CMP #12
  BCS not_taken
  LDA itemy
  SEC
  SBC py
  JSR absolute
  CMP #12
  BCS not_taken
  LDA #1
  STA equipment-1,x
  LDA #0
  STA itemtype
  LDA hp
  CLC
  ADC #2
  CMP maxhp
  BCC healthy
  LDA maxhp
healthy:
  STA hp
  INC keys
not_taken:
  RTS

absolute:
  BCS positive
  EOR #$FF
  ADC #1
positive:
  RTS
